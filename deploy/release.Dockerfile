# The images of a release, from static binaries and an empty base. The context has a folder with the binary for each
# architecture (amd64, arm64), and ca-certificates.crt. ../.github/workflows/release.yaml builds them.
FROM scratch AS base
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
STOPSIGNAL SIGTERM

# The path that Envoy Gateway and others expect.
FROM base AS ratelimit
ARG TARGETARCH
COPY $TARGETARCH/tollgate /bin/ratelimit
EXPOSE 8080 8081 6070
ENTRYPOINT ["/bin/ratelimit"]

FROM base AS tollgate
ARG TARGETARCH
COPY $TARGETARCH/tollgate /usr/local/bin/tollgate
EXPOSE 8080 9091
# `tollgate health` queries /readyz, so a container is unhealthy while it drains.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 \
    CMD ["/usr/local/bin/tollgate", "health"]
ENTRYPOINT ["/usr/local/bin/tollgate"]
# In a container, loopback is not reachable from outside. To use a configuration, mount it and pass --config instead.
CMD ["serve", "--http", "0.0.0.0:8080", "--metrics", "0.0.0.0:9091"]
