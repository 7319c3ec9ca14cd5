package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/cmd/internal/cli"
)

const examples = `  # Open the dashboard of the hub in a browser
  waybill dashboard

  # Print its address only, at a port that stays the same
  waybill dashboard --port 8090 --no-browser`

// options are the flags of the command.
type options struct {
	env       *cli.Env
	port      uint16
	noBrowser bool
}

// New returns the command.
func New(env *cli.Env) *cobra.Command {
	o := &options{env: env}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "See the fleet, the catalog and what is not well in a browser",
		Long: `See the fleet, the catalog and what is not well in a browser.

It serves the pages at this machine's loopback address until it is interrupted, and shows and does
what you may with your kubeconfig. The address that it prints lets in one browser, once.`,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().Uint16Var(&o.port, "port", 0, "Port to listen at; 0 for any that is free")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "Only print the address")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	hub, err := o.env.Hub()
	if err != nil {
		return err
	}
	namespace, _, err := o.env.Namespace()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	s, browser, err := newLocal(ctx, hub, namespace)
	if err != nil {
		return err
	}
	s.systemNamespace = o.env.SystemNamespace
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("listen at --port: %w", err)
	}
	address := "http://" + listener.Addr().String() + browser.path()
	fmt.Fprintf(o.env.Out, "The dashboard of %s is at %s\n", hub.Name(), address)
	fmt.Fprintln(o.env.ErrOut, "It is there until you press Ctrl-C.")
	if !o.noBrowser {
		group.Go(func() error {
			if err := openBrowser(ctx, address, browser.redeemed); err != nil {
				o.env.Warnf("No browser was opened (%v): open the address yourself.", err)
			}
			return nil
		})
	}
	group.Go(func() error { return s.inventory.run(ctx) })
	group.Go(func() error { return s.serve(listener, nil) })
	return group.Wait()
}

// functions are what pages call.
var functions = template.FuncMap{
	"join":   strings.Join,
	"indent": func(level int) string { return fmt.Sprintf("level-%d", min(level, 12)) },
	"add":    func(a, b int) int { return a + b },
	"dict": func(pairs ...any) map[string]any {
		named := map[string]any{}
		for i := 0; i+1 < len(pairs); i += 2 {
			named[fmt.Sprint(pairs[i])] = pairs[i+1]
		}
		return named
	},
}
