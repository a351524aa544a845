// The form of values in messages: Codec<T> turns a T into bytes and back.
//
// Plain values, strings and vectors of plain values have codecs. Other types get one by a specialisation, without a
// code generator:
//
//     template <>
//     struct cairn::rpc::Codec<Name> {
//         static std::size_t bytes_of(const Name& name) { return name.text.size(); }
//         static void put(const Name& name, std::span<std::uint8_t> room);             // room has bytes_of(name) bytes
//         static std::optional<Name> get(std::span<const std::uint8_t> bytes);         // nothing if they are no Name
//     };
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace cairn::rpc {

template <class T>
concept PlainValue = std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T> && !std::is_pointer_v<T> &&
                     !std::ranges::view<T> && !std::same_as<T, bool>;

template <class T>
struct Codec;

// T has a codec. get() sees a peer's bytes. So it takes any bytes, and allocates no more than their number suggests.
template <class T>
concept Serialisable = requires(const T& value, std::span<std::uint8_t> room, std::span<const std::uint8_t> bytes) {
    { Codec<T>::bytes_of(value) } -> std::convertible_to<std::size_t>;
    { Codec<T>::put(value, room) } -> std::same_as<void>;
    { Codec<T>::get(bytes) } -> std::same_as<std::optional<T>>;
};

// A value as it lies in memory. Both ends must agree on its layout and byte order.
template <PlainValue T>
struct Codec<T> {
    static constexpr std::uint32_t kBytes = sizeof(T);  // of each value
    [[nodiscard]] static constexpr std::size_t bytes_of(const T&) noexcept { return sizeof(T); }
    static void put(const T& value, std::span<std::uint8_t> room) noexcept {
        std::memcpy(room.data(), &value, sizeof(T));
    }
    [[nodiscard]] static std::optional<T> get(std::span<const std::uint8_t> bytes) noexcept {
        if (bytes.size() != sizeof(T)) {
            return std::nullopt;
        }
        T value{};
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }
};

// The elements in order. Bytes that are not a whole number of elements are no such value.
template <class List>
struct ListCodec {
    using Element = typename List::value_type;
    [[nodiscard]] static std::size_t bytes_of(const List& list) noexcept { return list.size() * sizeof(Element); }
    static void put(const List& list, std::span<std::uint8_t> room) noexcept {
        if (!list.empty()) {
            std::memcpy(room.data(), list.data(), room.size());
        }
    }
    [[nodiscard]] static std::optional<List> get(std::span<const std::uint8_t> bytes) {
        if (bytes.size() % sizeof(Element) != 0) {
            return std::nullopt;
        }
        List list(bytes.size() / sizeof(Element), Element{});
        if (!bytes.empty()) {
            std::memcpy(list.data(), bytes.data(), bytes.size());
        }
        return list;
    }
};
template <>
struct Codec<std::string> : ListCodec<std::string> {};
template <PlainValue T>
struct Codec<std::vector<T>> : ListCodec<std::vector<T>> {};

// All values of T take the same number of bytes: Codec<T>::kBytes.
template <class T>
concept OfOneSize = requires {
    Codec<T>::kBytes;
};
// The number of bytes of any T, or 0 if it differs between values.
template <class T>
constexpr std::uint32_t kMostBytesOf = 0;
template <OfOneSize T>
constexpr std::uint32_t kMostBytesOf<T> = Codec<T>::kBytes;

// The bytes of a value. Values of a fixed size need no memory of the heap.
template <Serialisable T>
class Encoded {
public:
    explicit Encoded(const T& value) {
        if constexpr (!OfOneSize<T>) {
            bytes_.resize(Codec<T>::bytes_of(value));
        }
        Codec<T>::put(value, bytes_);
    }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }

private:
    std::conditional_t<OfOneSize<T>, std::array<std::uint8_t, kMostBytesOf<T>>, std::vector<std::uint8_t>> bytes_;
};

}  // namespace cairn::rpc
