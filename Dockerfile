# The image of the service: docs/operating.md, "Start".
#
#   docker build -t petstore .
#
# A private npm registry: docker build --secret id=npmrc,src=$HOME/.npmrc …
# Pinned by the digest of its index of platforms; that of a newer one: docker buildx imagetools inspect node:24-bookworm-slim
ARG NODE_IMAGE=docker.io/library/node:24.18.0-bookworm-slim@sha256:6f7b03f7c2c8e2e784dcf9295400527b9b1270fd37b7e9a7285cf83b6951452d

# JavaScript, WebAssembly and data alone leave this stage, so one build serves every processor.
FROM --platform=${BUILDPLATFORM} ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY schematics schematics
RUN --mount=type=secret,id=npmrc NPM_CONFIG_USERCONFIG=/run/secrets/npmrc npm ci --ignore-scripts
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY docs/guide.md docs/operating.md docs/
COPY migrations migrations
COPY src src
COPY libs libs
COPY clients clients
RUN npm run build && mkdir data
RUN node scripts/with-tracing.js
# Optional and peer packages that production needs are dependencies of package.json, too.
RUN npm prune --omit=dev --omit=optional --omit=peer --ignore-scripts
# Types and source maps are half of the packages, and nothing loads them.
RUN find node_modules -type f '(' -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' ')' -delete && rm -rf node_modules/@types

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Pet Store Service" \
  org.opencontainers.image.description="A catalogue of pets behind a REST API" \
  org.opencontainers.image.licenses="MIT"
# DATA_DIR is written to by the embedded engine alone: mount a volume at /data.
ENV NODE_ENV=production DATA_DIR=/data/petstore
WORKDIR /app
# 1000 is the user `node` of the base image.
COPY --from=build --chown=1000:1000 /app/data /data
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/scripts/check-system.cjs scripts/
# By number, so that Kubernetes can check that it is not root.
USER 1000:1000
EXPOSE 3000
STOPSIGNAL SIGTERM
# Live, not ready: a container that is replaced because its database is unreachable helps nobody.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without a shell or npm between: the signal to stop reaches the service. Other commands: docker run … dist/src/cli.js
ENTRYPOINT ["node"]
# V8 would allocate the rows of a page in its old generation, which costs a fifth more processor time for long lists; and a start
# would fill a young generation of 1 MiB again and again, which costs a twentieth.
CMD ["--no-allocation-site-pretenuring", "--min-semi-space-size=16", "dist/bundle/main.js"]
