package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// headerTimeout bounds the handshake and the headers of a request.
	headerTimeout = 10 * time.Second

	// idleTimeout is how long an idle connection is kept.
	idleTimeout = 90 * time.Second

	// shutdownTimeout is how long what is being answered has to end.
	shutdownTimeout = time.Minute

	// maxHeaders is the size of the headers of a request.
	maxHeaders = 64 << 10
)

// Start implements webhook.Server: it serves until ctx ends, and then until everything is answered.
// It is not the embedded server's, which accepts any number of connections.
func (s *Server) Start(ctx context.Context) error {
	config := &tls.Config{NextProtos: []string{"h2"}}
	for _, change := range s.options.TLSOpts {
		change(config)
	}
	var inner net.ListenConfig
	address := net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port))
	listener, err := inner.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for admission reviews: %w", err)
	}
	server := &http.Server{
		Handler:           s.WebhookMux(),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaders,
	}
	log := ctrl.LoggerFrom(ctx).WithName("webhook")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		timeout, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(timeout); err != nil {
			log.Error(err, "stop serving admission reviews")
		}
	}()
	log.Info("serve admission reviews", "address", address)
	if err := server.Serve(tls.NewListener(newLimited(listener), config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admission reviews: %w", err)
	}
	<-stopped
	return nil
}
