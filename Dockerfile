# One image with all programs; the chart's containers say which one runs. 'make image' builds the
# same without a container engine.
#
#   docker build --build-arg VERSION=0.1.0 -t ghcr.io/waybill-dev/waybill:0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /out/ ./cmd/...

FROM gcr.io/distroless/static-debian12:nonroot
LABEL org.opencontainers.image.source=https://github.com/waybill-dev/waybill \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/ /
USER 65532:65532
ENTRYPOINT ["/waybill"]
