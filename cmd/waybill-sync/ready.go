package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// probePatience is how long a probe waits for caches: less than the second that kubelets give it.
const probePatience = 500 * time.Millisecond

// syncer is the part of a cache that says whether it is filled.
type syncer interface {
	WaitForCacheSync(ctx context.Context) bool
}

// cachesSynced is for /readyz: it fails until everything that the process reads from its caches
// has been read once. Caches are filled whether a process leads or not; what only the leader
// watches counts from when it leads. So a process that stands by is ready, and an update goes on
// to it, and one that may not read what it needs never is.
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
