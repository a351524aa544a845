// Slab: a fixed number of objects of one type in one block of memory. Handles name them, and notice when their object
// is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::mem {

// Names an object of a Slab<T>. The default handle names no object.
template <class T>
struct Handle {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;  // odd while the object lives; 0: no object

    [[nodiscard]] constexpr bool valid() const noexcept { return generation != 0; }
    friend constexpr bool operator==(const Handle&, const Handle&) noexcept = default;
};

// Holds up to `capacity` objects. Allocates once, in the constructor. Emplacing and erasing take constant time. A
// handle to an erased object is recognised until its slot has been used 2^31 times more. Objects never move. The slab
// is neither copied nor moved, so that pointers into it stay valid. Belongs to one thread.
template <class T>
class Slab {
public:
    explicit Slab(std::uint32_t capacity) : slots_(std::make_unique<Slot[]>(capacity)), capacity_(capacity) {
        for (std::uint32_t i = 0; i < capacity; ++i) {
            slots_[i].next_free = i + 1;  // the lowest index comes first; `capacity` ends the list
        }
    }
    ~Slab() {
        for_each([this](Handle<T> handle, T&) { erase(handle); });
    }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    Slab(Slab&&) = delete;
    Slab& operator=(Slab&&) = delete;

    // Returns the handle of a new object; an invalid handle if all slots are taken.
    template <class... Args>
    [[nodiscard]] Handle<T> try_emplace(Args&&... args) {
        if (first_free_ == capacity_) {
            return {};
        }
        const std::uint32_t index = first_free_;
        Slot& slot = slots_[index];
        ::new (static_cast<void*>(slot.bytes)) T(std::forward<Args>(args)...);
        first_free_ = slot.next_free;
        ++slot.generation;
        ++size_;
        return {index, slot.generation};
    }

    // Returns the object; nullptr if it was erased or the handle names none.
    [[nodiscard]] T* find(Handle<T> handle) noexcept {
        return is_live(handle) ? object(slots_[handle.index]) : nullptr;
    }
    [[nodiscard]] const T* find(Handle<T> handle) const noexcept {
        return is_live(handle) ? object(slots_[handle.index]) : nullptr;
    }

    // Destroys the object. Returns false if it was gone already.
    bool erase(Handle<T> handle) noexcept {
        if (!is_live(handle)) {
            return false;
        }
        Slot& slot = slots_[handle.index];
        object(slot)->~T();
        ++slot.generation;
        slot.next_free = first_free_;
        first_free_ = handle.index;
        CAIRN_ASSERT(size_ > 0);
        --size_;
        return true;
    }

    // Calls visit(handle, object) for each object in slot order. `visit` may erase the object that it is given.
    template <class Visit>
    void for_each(Visit&& visit) {
        for (std::uint32_t i = 0; i < capacity_; ++i) {
            Slot& slot = slots_[i];
            if ((slot.generation & 1U) != 0) {
                visit(Handle<T>{i, slot.generation}, *object(slot));
            }
        }
    }

    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] bool full() const noexcept { return first_free_ == capacity_; }

private:
    struct Slot {
        alignas(T) std::byte bytes[sizeof(T)];
        std::uint32_t generation = 0;  // odd: `bytes` holds an object
        std::uint32_t next_free = 0;   // valid while the slot holds no object
    };

    [[nodiscard]] bool is_live(Handle<T> handle) const noexcept {
        return (handle.generation & 1U) != 0 && handle.index < capacity_ &&
               slots_[handle.index].generation == handle.generation;
    }
    static T* object(Slot& slot) noexcept { return std::launder(reinterpret_cast<T*>(slot.bytes)); }
    static const T* object(const Slot& slot) noexcept { return std::launder(reinterpret_cast<const T*>(slot.bytes)); }

    std::unique_ptr<Slot[]> slots_;
    std::uint32_t capacity_;
    std::uint32_t size_ = 0;
    std::uint32_t first_free_ = 0;  // `capacity_` when full
};

}  // namespace cairn::mem
