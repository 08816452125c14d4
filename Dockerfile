# Two stages by the same scripts as on a bare machine: one that builds, and a small one that runs. The CPU build only.
#   docker build -t quell .
#   docker run --rm -v "$PWD/runs:/quell/runs" quell train configs/text_small.yaml
FROM debian:bookworm-slim AS build
WORKDIR /quell
COPY scripts/setup scripts/build scripts/
RUN scripts/setup
COPY . .
RUN scripts/build release quell && scripts/prepare_kjv

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends libyaml-cpp0.7 libspdlog1.10 libxxhash0 libgomp1 \
      libspng0 libjpeg62-turbo zlib1g \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /quell
# Of the wheel only what the CPU build loads.
COPY --from=build /quell/.deps/torch/lib/libtorch_cpu.so /quell/.deps/torch/lib/libc10.so /quell/.deps/torch/lib/libgomp.so.1 .deps/torch/lib/
COPY --from=build /quell/.deps/nvidia .deps/nvidia
COPY --from=build /quell/build/release/quell build/release/quell
COPY --from=build /quell/data/kjv data/kjv
COPY configs configs
ENTRYPOINT ["build/release/quell"]
CMD ["--help"]
