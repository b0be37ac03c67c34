# syntax=docker/dockerfile:1
# check=error=true

# Pinned by tag. The release workflow adds the digests of the day.
ARG NODE_IMAGE=docker.io/library/node:26-trixie-slim
ARG GO_IMAGE=docker.io/library/golang:1.27.4-trixie
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs26-debian13:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS go

# Everything is built on the builder's own platform: the bundles are the same for all, and Go cross-compiles.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
COPY --from=go /usr/local/go /usr/local/go
ENV PATH=/usr/local/go/bin:$PATH
WORKDIR /src
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm npm ci --no-audit --no-fund
COPY . .
ARG TARGETARCH
# Pods start both Go programs by their paths, which must be the same for all architectures. Agents install the plugin by its other name.
RUN --mount=type=cache,target=/root/.cache --mount=type=cache,target=/root/go/pkg/mod npm run build -- "$TARGETARCH" && \
    mv "dist/packets/holdfast-packets-linux-$TARGETARCH" dist/packets/holdfast-packets && \
    ln -s "holdfast-linux-$TARGETARCH" dist/cni/holdfast

FROM ${RUNTIME_IMAGE}
WORKDIR /opt/holdfast
# package.json says that dist/ holds ES modules.
COPY --from=build /src/package.json /src/LICENSE ./
COPY --from=build /src/dist dist
# By number, so that Kubernetes can tell that it is not root.
USER 1000:1000
# Little memory, at the price of more garbage collections; none stops the process for long: bench/scale/scale.ts.
# With most other options of V8, Node.js compiles its own modules at each start; holdfast.ts sets one more when it has started.
ENTRYPOINT ["/nodejs/bin/node", "--max-semi-space-size=4", "/opt/holdfast/dist/holdfast.js"]
CMD ["--help"]

ARG RUNTIME_IMAGE
ARG VERSION=0.0.0
ARG REVISION=unknown
# In the format of RFC 3339.
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="Holdfast" \
      org.opencontainers.image.description="Persistent IP addresses for KubeVirt virtual machines on any secondary network" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${RUNTIME_IMAGE}"
