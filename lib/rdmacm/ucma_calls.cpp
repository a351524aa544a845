// The commands of a kernel's rdma_cm, each carried out by its endpoint.
#include <cerrno>
#include <exception>
#include <utility>

#include "lib/rdmacm/ucma.hpp"
#include "lib/rdmacm/ucma_answers.hpp"

namespace cairn::rdmacm::ucma {

namespace {

using Of = const std::shared_ptr<File>&;

// Returns the result of `work` with the id; EINVAL if the file has none of that name.
template <class Work>
[[nodiscard]] int with_id(Of file, std::uint32_t name, const Work& work) {
    const std::shared_ptr<KernelId> id = table().find(*file, name);
    return id == nullptr ? EINVAL : work(*id);
}

[[nodiscard]] int call(Of file, const CreateId& wanted) {
    OwnedEndpoint endpoint(new Endpoint(wanted.space, wanted.type, file->channel));
    const abi::rdma_ucm_create_id_resp made{
        table().add(std::make_shared<KernelId>(file, wanted.uid, std::move(endpoint)))};
    answer(wanted.reply, made);
    return 0;
}

[[nodiscard]] int call(Of file, const DestroyId& wanted) {
    std::shared_ptr<KernelId> id;
    const std::optional<std::uint32_t> reported = table().remove(*file, wanted.id, id);
    if (!reported) {
        return EINVAL;
    }
    end(*id->endpoint);
    answer(wanted.reply, abi::rdma_ucm_destroy_id_resp{*reported});
    return 0;
}

[[nodiscard]] int call(Of file, const Bind& wanted) {
    return with_id(file, wanted.id, [&](KernelId& id) { return bind(*id.endpoint, wanted.local); });
}

[[nodiscard]] int call(Of file, const ResolveAddress& wanted) {
    return with_id(file, wanted.id,
                   [&](KernelId& id) { return resolve_address(*id.endpoint, wanted.local, wanted.remote); });
}

[[nodiscard]] int call(Of file, const ResolveRoute& wanted) {
    return with_id(file, wanted.id, [](KernelId& id) { return resolve_route(*id.endpoint); });
}

[[nodiscard]] int call(Of file, const Query& wanted) {
    return with_id(file, wanted.id, [&wanted](KernelId& id) {
        switch (wanted.question) {
            case Question::Route:
                answer(wanted.reply, route_answer(*id.endpoint));
                break;
            case Question::Address:
                answer(wanted.reply, address_answer(*id.endpoint));
                break;
            case Question::Path:
                answer(wanted.reply, path_answer(*id.endpoint));
                break;
            case Question::Gid:
                answer(wanted.reply, gid_answer(*id.endpoint));
                break;
        }
        return 0;
    });
}

[[nodiscard]] int call(Of file, const Connect& wanted) {
    return with_id(file, wanted.id,
                   [&](KernelId& id) { return connect(*id.endpoint, to_parameters(wanted.parameters)); });
}

[[nodiscard]] int call(Of file, const Listen& wanted) {
    return with_id(file, wanted.id, [&](KernelId& id) { return listen(*id.endpoint, wanted.backlog); });
}

// Events that follow at once name the id by the number that comes with the call.
[[nodiscard]] int call(Of file, const Accept& wanted) {
    return with_id(file, wanted.id, [&wanted](KernelId& id) {
        if (wanted.parameters.valid == 0) {
            return establish(*id.endpoint);
        }
        const std::uint64_t before = table().rename(id, wanted.uid);
        const int refused = accept(*id.endpoint, to_parameters(wanted.parameters));
        if (refused != 0) {
            table().rename(id, before);
        }
        return refused;
    });
}

[[nodiscard]] int call(Of file, const Reject& wanted) {
    return with_id(file, wanted.id, [&](KernelId& id) {
        return reject(*id.endpoint, {wanted.how.private_data, wanted.how.private_data_len}, wanted.how.reason);
    });
}

[[nodiscard]] int call(Of file, const Disconnect& wanted) {
    return with_id(file, wanted.id, [](KernelId& id) { return disconnect(*id.endpoint); });
}

[[nodiscard]] int call(Of file, const InitQp& wanted) {
    return with_id(file, wanted.id, [&wanted](KernelId& id) {
        ibv_qp_attr attributes{};
        attributes.qp_state = wanted.to;
        int mask = 0;
        const int refused = init_attributes(*id.endpoint, attributes, mask);
        if (refused == 0) {
            answer(wanted.reply, qp_answer(attributes, mask));
        }
        return refused;
    });
}

// An id that ended may have taken its event back after the descriptor counted it.
[[nodiscard]] int call(Of file, const GetEvent& wanted) {
    for (;;) {
        if (!file->channel.count.wait()) {
            return errno;
        }
        const NoCancellation whole;
        if (const std::optional<abi::rdma_ucm_event_resp> told = table().next_event(file)) {
            answer(wanted.reply, *told);
            return 0;
        }
    }
}

[[nodiscard]] int call(Of file, const SetOption& wanted) {
    return with_id(file, wanted.id, [&what = wanted.what](KernelId& id) {
        const auto* const value = reinterpret_cast<const std::uint8_t*>(what.optval);
        return set_option(*id.endpoint, static_cast<int>(what.level), static_cast<int>(what.optname),
                          {value, what.optlen});
    });
}

[[nodiscard]] int call(Of file, const Notify& wanted) {
    return with_id(file, wanted.id, [&](KernelId& id) { return notify(*id.endpoint, wanted.event); });
}

[[nodiscard]] int call(Of file, const Join& wanted) {
    return with_id(file, wanted.id, [&wanted](KernelId& id) {
        const auto group = std::make_shared<KernelGroup>();
        group->uid = wanted.uid;
        group->of_id = id.name;
        group->end = wanted.group;
        const std::uint32_t name = table().add(group);
        auto* const context = reinterpret_cast<void*>(std::uintptr_t{name});
        const int refused = join(*id.endpoint, wanted.group, wanted.sends_only, context);
        if (refused != 0) {
            static_cast<void>(table().remove(*group));
            return refused;
        }
        answer(wanted.reply, abi::rdma_ucm_create_id_resp{name});
        return 0;
    });
}

[[nodiscard]] int call(Of file, const Leave& wanted) {
    const std::shared_ptr<KernelGroup> group = table().find_group(*file, wanted.group);
    if (group == nullptr) {
        return EINVAL;
    }
    return with_id(file, group->of_id, [&](KernelId& id) {
        if (Group* const joined = find_group(*id.endpoint, group->end)) {
            leave(*id.endpoint, *joined);
        }
        answer(wanted.reply, abi::rdma_ucm_destroy_id_resp{table().remove(*group)});
        return 0;
    });
}

// `file` is the one to which the id goes.
[[nodiscard]] int call(Of file, const Migrate& wanted) {
    const std::shared_ptr<File> from = table().find(wanted.from);
    if (from == nullptr) {
        return EINVAL;
    }
    return with_id(from, wanted.id, [&](KernelId& id) {
        answer(wanted.reply, abi::rdma_ucm_migrate_resp{table().migrate(id, file)});
        return 0;
    });
}

}  // namespace

int perform(const std::shared_ptr<File>& file, std::span<const std::uint8_t> written) {
    const Parsed parsed = parse_command(written);
    if (const int* const refused = std::get_if<int>(&parsed)) {
        return *refused;
    }
    try {
        return std::visit([&file](const auto& wanted) { return call(file, wanted); }, std::get<Command>(parsed));
    } catch (const std::exception&) {  // bad_alloc, or an exception that the standard library made of it
        return ENOMEM;
    }
}

}  // namespace cairn::rdmacm::ucma
