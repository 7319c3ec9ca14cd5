package csidriver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Mounter mounts folders where a kubelet sees them.
type Mounter interface {
	// Bind creates target and mounts a folder there.
	Bind(ctx context.Context, folder, target string) error
	// Unmount is the opposite; it is no error if nothing is mounted.
	Unmount(ctx context.Context, target string) error
}

// nodeService is the driver on a real Node.
type nodeService struct {
	csi.UnimplementedNodeServer

	driver *Driver
}

// NodeGetInfo says which Node this is.
func (n nodeService) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	node := n.driver.options.Node
	return &csi.NodeGetInfoResponse{NodeId: node, AccessibleTopology: &csi.Topology{Segments: map[string]string{TopologyKey: node}}}, nil
}

// NodeGetCapabilities says that volumes need no staging.
func (n nodeService) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts the folder of a volume for a Pod.
func (n nodeService) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	end, err := n.driver.begin(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer end()
	folder, err := n.driver.Folder(r.GetVolumeId())
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err := n.driver.options.Mounter.Bind(ctx, folder, r.GetTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume takes it away again.
func (n nodeService) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := n.driver.options.Mounter.Unmount(ctx, r.GetTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// registration announces to a kubelet where the driver is.
type registration struct {
	registerv1.UnimplementedRegistrationServer

	socket string
}

// GetInfo returns the driver's name and socket.
func (r registration) GetInfo(context.Context, *registerv1.InfoRequest) (*registerv1.PluginInfo, error) {
	return &registerv1.PluginInfo{Type: registerv1.CSIPlugin, Name: Name, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus gets the result of that: a kubelet that refuses the driver has it in its log.
func (r registration) NotifyRegistrationStatus(context.Context, *registerv1.RegistrationStatus) (*registerv1.RegistrationStatusResponse, error) {
	return &registerv1.RegistrationStatusResponse{}, nil
}
