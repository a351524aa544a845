// The compiled part of fmt. A drop-in library cannot rely on one of the machine that it is used on.
#include <fmt/format-inl.h>

template FMT_API auto fmt::detail::dragonbox::to_decimal(float) noexcept -> fmt::detail::dragonbox::decimal_fp<float>;
template FMT_API auto fmt::detail::dragonbox::to_decimal(double) noexcept -> fmt::detail::dragonbox::decimal_fp<double>;
template FMT_API void fmt::detail::buffer<char>::append(const char*, const char*);
template FMT_API void fmt::detail::vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                              locale_ref);
template FMT_API auto fmt::detail::thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto fmt::detail::decimal_point_impl(locale_ref) -> char;
