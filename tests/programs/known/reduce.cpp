// gloo: an all-reduce over its transport for verbs. reduce RANK RANKS FOLDER DEVICE
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

int main(int argc, char** argv) {
    if (argc != 5) {
        return 2;
    }
    const int rank = std::atoi(argv[1]);
    const int ranks = std::atoi(argv[2]);
    gloo::rendezvous::FileStore store(argv[3]);
    auto device = gloo::transport::ibverbs::CreateDevice({argv[4], 1, 1});
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    context->connectFullMesh(store, device);
    std::vector<float> numbers(1 << 20);
    gloo::AllreduceRing<float> reduce(context, {numbers.data()}, static_cast<int>(numbers.size()));
    for (int times = 0; times < 3; ++times) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            numbers[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 97);
        }
        reduce.run();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (numbers[i] != static_cast<float>(ranks * (ranks + 1) / 2) * static_cast<float>(i % 97)) {
                std::fprintf(stderr, "rank %d: number %zu is wrong\n", rank, i);
                return 1;
            }
        }
    }
    (new gloo::BarrierAllToAll(context))->run();
    std::puts("all right");
    std::fflush(stdout);
    std::_Exit(0);  // gloo's buffers abort a program that ends them while a completion is outstanding
}
