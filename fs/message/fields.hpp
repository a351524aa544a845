// The fields of a message: little-endian, without gaps, in order. A text follows its length.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "fs/rules/ids.hpp"

namespace cairn::fs {

static_assert(std::endian::native == std::endian::little);

template <class T>
concept PlainField = std::integral<T> || std::is_enum_v<T>;

// Writes fields into a buffer. A field that does not fit is not written: see failed().
class FieldWriter {
public:
    explicit FieldWriter(std::span<std::uint8_t> room) noexcept : room_(room) {}

    template <class... Fields>
    void operator()(const Fields&... fields) noexcept {
        (put(fields), ...);
    }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    [[nodiscard]] std::uint32_t bytes() const noexcept { return static_cast<std::uint32_t>(at_); }

private:
    void put_bytes(const void* from, std::size_t bytes) noexcept {
        failed_ = failed_ || bytes > room_.size() - at_;
        if (!failed_ && bytes != 0) {
            std::memcpy(room_.data() + at_, from, bytes);
            at_ += bytes;
        }
    }
    void put(const PlainField auto& field) noexcept { put_bytes(&field, sizeof(field)); }
    void put(const FileId& id) noexcept { (*this)(id.place, id.random); }
    void put(std::string_view text) noexcept {
        failed_ = failed_ || text.size() > 0xffff;
        put(static_cast<std::uint16_t>(text.size()));
        put_bytes(text.data(), text.size());
    }

    std::span<std::uint8_t> room_;
    std::size_t at_ = 0;
    bool failed_ = false;
};

// Reads fields. A missing field reads as zero: see failed(). Texts refer to the buffer.
class FieldReader {
public:
    explicit FieldReader(std::span<const std::uint8_t> bytes) noexcept : rest_(bytes) {}

    template <class... Fields>
    void operator()(Fields&... fields) noexcept {
        (get(fields), ...);
    }
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    // Returns the bytes that were not read.
    [[nodiscard]] std::span<const std::uint8_t> rest() const noexcept { return rest_; }
    // True if all bytes were read, and no field was missing.
    [[nodiscard]] bool is_at_end() const noexcept { return !failed_ && rest_.empty(); }

private:
    [[nodiscard]] const std::uint8_t* take(std::size_t bytes) noexcept {
        failed_ = failed_ || bytes > rest_.size();
        if (failed_) {
            return nullptr;
        }
        const std::uint8_t* const from = rest_.data();
        rest_ = rest_.subspan(bytes);
        return from;
    }
    template <PlainField T>
    requires(!std::same_as<T, bool>) void get(T& field) noexcept {
        if (const std::uint8_t* const from = take(sizeof(T)); from != nullptr) {
            std::memcpy(&field, from, sizeof(T));
        }
    }
    void get(bool& field) noexcept {
        std::uint8_t byte = 0;
        get(byte);
        failed_ = failed_ || byte > 1;
        field = byte == 1;
    }
    void get(FileId& id) noexcept { (*this)(id.place, id.random); }
    void get(std::string_view& text) noexcept {
        std::uint16_t bytes = 0;
        get(bytes);
        const std::uint8_t* const from = take(bytes);
        text = from == nullptr ? std::string_view{} : std::string_view{reinterpret_cast<const char*>(from), bytes};
    }

    std::span<const std::uint8_t> rest_;
    bool failed_ = false;
};

}  // namespace cairn::fs
