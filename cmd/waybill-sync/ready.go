package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probePatience is how long a probe waits for caches: less than the second that the kubelet allows.
const probePatience = 500 * time.Millisecond

// syncer is the part of a cache that reports whether it is filled.
type syncer interface {
	WaitForCacheSync(ctx context.Context) bool
}

// cachesSynced is a check for /readyz that fails until all caches of the process are filled. Caches
// are filled whether a process leads or not; those that only the leader needs count once it leads.
// So a standby process becomes ready, which lets a rolling update proceed, while a process that
// lacks permission to read what it needs never does.
func cachesSynced(caches syncer) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), probePatience)
		defer cancel()
		if !caches.WaitForCacheSync(ctx) {
			return errors.New("caches are not filled yet")
		}
		return nil
	}
}
