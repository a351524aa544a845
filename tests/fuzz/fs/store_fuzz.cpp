// A store whose log has entries of any bytes, and whose superblock has any numbers: it is opened or refused. The
// checksums are correct, since a wrong one leads to a single branch.
#include <cstring>
#include <string>

#include "fs/store/checksum.hpp"
#include "fs/store/store.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/recording_medium.hpp"

namespace {

using namespace cairn;

constexpr std::size_t kBytes = 16U << 20U;
constexpr std::size_t kEntryHeader = 16;

// Puts an entry after another one. Returns its checksum.
std::uint32_t put_entry(std::span<std::uint8_t> at, std::uint32_t seed, std::uint64_t number,
                        std::span<const std::uint8_t> records) {
    const auto bytes = static_cast<std::uint32_t>(records.size());
    std::memcpy(at.data() + 4, &bytes, sizeof(bytes));
    std::memcpy(at.data() + 8, &number, sizeof(number));
    std::memcpy(at.data() + kEntryHeader, records.data(), records.size());
    const std::uint32_t crc = fs::crc32c(seed, at.subspan(4, kEntryHeader - 4 + bytes));
    std::memcpy(at.data(), &crc, sizeof(crc));
    return crc;
}

// A record with fields of any kind.
void put_some(test::Input& input, std::vector<std::uint8_t>& records) {
    const fs::FileId file{std::uint64_t{input.byte()} % 4, 1};
    const fs::ChunkId chunk{file, std::uint32_t{input.byte()} % 2};
    const std::string name(1 + input.byte() % 3, 'n');
    switch (input.byte() % 8) {
        case 0: {
            std::vector<fs::Extent> extents;
            for (std::uint32_t i = input.byte() % 4; i != 0; --i) {
                const std::uint32_t first = input.byte() % 2 == 0 ? input.take<std::uint32_t>() : 128U + input.byte();
                extents.push_back({input.byte(), {first, input.byte()}});
            }
            fs::put_record(records, fs::Chunk{chunk, input.byte(), extents});
            break;
        }
        case 1:
            fs::put_record(records, fs::NextUnit{input.byte() % 2 == 0 ? input.take<std::uint32_t>() : input.byte()});
            break;
        case 2:
            fs::put_record(records, fs::Dentry{file, file, 0, name});
            break;
        case 3:
            fs::put_record(records, fs::Gone{fs::Gone::Name{file, name}});
            break;
        case 4:
            fs::put_record(records, fs::Gone{chunk});
            break;
        case 5:
            fs::put_record(records, fs::Gone{file});
            break;
        default: {
            fs::Inode inode;
            inode.id = file;
            inode.target = name;
            fs::put_record(records, inode);
        }
    }
}

// Uses an opened store.
void use(fs::Store& store) {
    store.check();
    fs::Change change;
    fs::Inode inode;
    inode.id = {77, 77};
    change.put(inode);
    (void)store.apply(change, fs::Need::Grows);
    store.commit();
    while (store.clean(1U << 20U)) {
    }
    store.check();
    store.tables().chunks().for_each([&](const fs::ChunkId& id, const fs::ChunkState&) { (void)store.scrub(id); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    const auto medium = test::RecordingMedium::of_zeros(kBytes);
    fs::Superblock superblock;
    superblock.blocks = kBytes / fs::kBlockBytes;
    superblock.chunk_bytes = input.byte() % 4 == 0 ? input.take<std::uint32_t>() : fs::StoreShape::kLeastChunkBytes;
    superblock.oldest_unit = input.byte() % 8 == 0 ? input.take<std::uint32_t>() : 1;
    superblock.number = 1;
    write_superblock(*medium, superblock);
    std::uint32_t seed = 0;
    std::uint64_t number = 1;
    std::size_t at = fs::kUnitBytes;
    while (!input.empty() && at + 1024 < std::size_t{2} * fs::kUnitBytes) {
        std::vector<std::uint8_t> records;
        if (input.byte() % 4 == 0) {
            records = input.bytes(std::size_t{1} + input.byte());
            records.resize((records.size() + 8) / 8 * 8);
        } else {
            put_some(input, records);
        }
        seed = put_entry(medium->memory().subspan(at), seed, number++, records);
        at += kEntryHeader + records.size();
    }
    const auto opened = fs::Store::open(*medium);
    if (opened.ok()) {
        use(*opened.value());
    } else {
        test::require(!opened.error().remedy.empty());
    }
    return 0;
}
