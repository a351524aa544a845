// Sends late sizes of a relaxed client to homes.
#include <cerrno>

#include "fs/client/asking.hpp"
#include "fs/client/client_thread.hpp"
#include "fs/client/coarse_time.hpp"
#include "fs/client/operations.hpp"

namespace cairn::fs {

namespace {

constexpr int kMostTells = 16;  // while others cut the file again and again

// True if the home may still learn the size: then it is sent again later.
bool may_be_told(int error) noexcept {
    return error == EIO || error == ETIMEDOUT || error == ENOSPC;
}

// The bytes are in the chunks already. The home did not know of them, so no cut has reached them. Therefore the file
// becomes longer after a cut, not before it.
Task<int> tell(ClientThread& thread, LateSize size) {
    for (int tries = 0; tries != kMostTells; ++tries) {
        const ExtendRequest request{size.file, size.grant, size.end, size.generation};
        const Outcome<DataAnswer> told = co_await Asking<DataAnswer>(thread.road(), Target::home(size.file), request);
        if (told.error != kErrorOtherGeneration) {
            co_return told.error;
        }
        const Outcome<Attributes> home = co_await stat_file(thread, size.file);
        if (!home.ok()) {
            co_return home.error;
        }
        size.generation = home.value.generation;
    }
    co_return EIO;
}

}  // namespace

// If another thread sends the size at this moment, waits by asking the home for attributes. That takes a short time
// only.
Task<int> tell_late(ClientThread& thread, FileId file) {
    LateSizes& late = thread.late();
    LateSize size;
    LateSizes::Begun begun = LateSizes::Begun::Nothing;
    while (late.any() && (begun = late.begin(file, size)) == LateSizes::Begun::Another) {
        const Outcome<Attributes> home = co_await stat_file(thread, file);
        if (!home.ok()) {
            co_return home.error;
        }
    }
    if (begun != LateSizes::Begun::Mine) {
        co_return 0;
    }
    const int error = co_await tell(thread, size);
    if (may_be_told(error)) {
        late.put_back(file, coarse_now());
    } else {
        late.end(file);
    }
    co_return error;
}

Task<Outcome<Attributes>> stat_open_file(ClientThread& thread, const File& file) {
    if (const int error = co_await tell_late(thread, file.id); error != 0) {
        co_return Failure{error};
    }
    co_return co_await stat_file(thread, file.id);
}

}  // namespace cairn::fs
