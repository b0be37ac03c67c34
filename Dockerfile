FROM golang:1.24 AS go

FROM node:20-slim AS build
# The CNI plugin is compiled for all architectures at once.
COPY --from=go /usr/local/go /usr/local/go
ENV PATH=/usr/local/go/bin:$PATH
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:20-slim
WORKDIR /opt/holdfast
# package.json says that dist/ holds ES modules.
COPY --from=build /src/package.json /src/LICENSE ./
COPY --from=build /src/dist dist
# By number, so that Kubernetes can tell that it is not root.
USER 1000:1000
# Half the memory for a few per cent of CPU: bench/memory.ts.
ENTRYPOINT ["node", "--max-semi-space-size=4", "--optimize-for-size", "/opt/holdfast/dist/holdfast.js"]
CMD ["--help"]
