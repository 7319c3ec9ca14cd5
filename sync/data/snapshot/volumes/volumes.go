package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Volumes takes snapshots in the cluster of Client, which reads without a cache and knows the kinds of
// snapshots: see NewClient.
type Volumes struct {
	Client client.Client
}

// Owner is the ApplicationSnapshot that snapshots are taken for.
type Owner struct {
	Namespace string
	UID       types.UID
}

// NewClient returns a client for the kinds of Kubernetes, of Waybill and of snapshots. The latter need
// not be served.
func NewClient(config *rest.Config, mapper meta.RESTMapper) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme, snapshotv1.AddToScheme, groupsnapshotv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	built, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("build client for snapshots: %w", err)
	}
	return built, nil
}

// name returns the name of the VolumeSnapshot of a claim or, with a driver, of a VolumeGroupSnapshot.
func (o Owner) name(of string) string {
	sum := sha256.Sum256([]byte(of))
	return fmt.Sprintf("snap-%s-%s", o.UID, hex.EncodeToString(sum[:5]))
}

func (o Owner) labels() map[string]string {
	return map[string]string{v1alpha1.SnapshotUIDLabel: string(o.UID)}
}
