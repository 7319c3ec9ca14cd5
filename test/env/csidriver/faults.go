package csidriver

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault says what goes wrong in which calls. Tests that share a driver do not disturb each other if
// they name their namespaces.
type Fault struct {
	// Method is the call's name in the CSI specification, such as CreateSnapshot. Required.
	Method string
	// Namespace and Name are those of the claim, VolumeSnapshot or VolumeGroupSnapshot that the call is
	// for; for a snapshot, also those of the claims that it is taken of. Empty ones mean any.
	Namespace, Name string
	// Skip is how many such calls go well before.
	Skip int
	// Times is how many calls go wrong; 0 for all, until the fault is removed.
	Times int

	// Delay passes before anything is done.
	Delay time.Duration
	// Code, unless OK, is the error that the caller gets, with Message.
	Code    codes.Code
	Message string
	// Done says that all is done before the caller gets the error, as if an answer were lost.
	Done bool
	// NotReady says of a snapshot that it is taken, but not ready to use yet. The snapshotter asks again:
	// by CreateSnapshot, CreateVolumeGroupSnapshot or GetVolumeGroupSnapshot, or, for the single snapshots
	// of a group, by ListSnapshots.
	NotReady bool
}

type faults struct {
	sync.Mutex

	active []*activeFault
}

type activeFault struct {
	Fault

	calls int // that it applies to, so far
}

// Inject makes calls go wrong until remove is called.
func (d *Driver) Inject(f Fault) (remove func()) {
	d.faults.Lock()
	defer d.faults.Unlock()
	added := &activeFault{Fault: f}
	d.faults.active = append(d.faults.active, added)
	return func() {
		d.faults.Lock()
		defer d.faults.Unlock()
		d.faults.active = slices.DeleteFunc(d.faults.active, func(a *activeFault) bool { return a == added })
	}
}

// next returns what goes wrong in a call that arrives now. The first fault that applies wins.
func (f *faults) next(method string, of subject) Fault {
	f.Lock()
	defer f.Unlock()
	for _, a := range f.active {
		if !a.concerns(method, of) {
			continue
		}
		a.calls++
		if a.calls > a.Skip && (a.Times == 0 || a.calls <= a.Skip+a.Times) {
			return a.Fault
		}
	}
	return Fault{}
}

func (f Fault) concerns(method string, of subject) bool {
	return f.Method == method &&
		(f.Namespace == "" || f.Namespace == of.namespace) &&
		(f.Name == "" || slices.Contains(of.names, f.Name))
}

func (d *Driver) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	f := d.faults.next(path.Base(info.FullMethod), d.subject(request))
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if f.Code != codes.OK && !f.Done {
		return nil, status.Error(f.Code, f.Message)
	}
	response, err := handle(ctx, request)
	if err != nil {
		return nil, err
	}
	if f.Code != codes.OK {
		return nil, status.Error(f.Code, f.Message)
	}
	if f.NotReady {
		markNotReady(response)
	}
	return response, nil
}

func markNotReady(response any) {
	switch r := response.(type) {
	case *csi.CreateSnapshotResponse:
		r.Snapshot.ReadyToUse = false
	case *csi.ListSnapshotsResponse:
		for _, entry := range r.GetEntries() {
			entry.Snapshot.ReadyToUse = false
		}
	case *csi.CreateVolumeGroupSnapshotResponse:
		r.GroupSnapshot.ReadyToUse = false
	case *csi.GetVolumeGroupSnapshotResponse:
		r.GroupSnapshot.ReadyToUse = false
	}
}
