// Records of a log from any bytes: a parsed record means the same when it is put again.
#include "fs/store/records.hpp"
#include "tests/fuzz/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    fs::RecordReader reader({data, size});
    std::size_t bytes = 0;
    while (const std::optional<fs::Record> record = reader.next()) {
        bytes += reader.raw().size();
        test::require(bytes <= size);
        std::vector<std::uint8_t> put;
        fs::put_record(put, *record);
        fs::RecordReader again(put);
        const std::optional<fs::Record> same = again.next();
        test::require(same.has_value() && same->index() == record->index());
        std::vector<std::uint8_t> put_again;
        fs::put_record(put_again, *same);
        test::require(put == put_again && put.size() == reader.raw().size());
    }
    test::require(reader.failed() == (bytes != size));
    return 0;
}
