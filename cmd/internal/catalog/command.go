package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/sync/source/chart"
)

const examples = `  # A definition of a chart, to be committed
  waybill catalog add https://charts.example.com web > catalog/web.yaml

  # From a registry, with the three newest versions
  waybill catalog add oci://registry.example.com/charts/widgets --all-versions 3

  # Add the versions that have appeared since
  waybill catalog bump -f catalog/web.yaml --constraint '^1'`

// New returns the command `catalog` with its commands.
func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog add | bump",
		Short: "Write and keep up the definitions of a catalog",
		Long: `Write ApplicationDefinitions from charts, and keep them up: add prints one, or applies it to the hub,
and bump adds the versions that have appeared in the chart's repository since.`,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("choose one of add and bump\nusage: %s", cmd.UseLine())
		},
	}
	cmd.AddCommand(newAdd(env), newBump(env))
	return cmd
}

// access is how a repository is accessed.
type access struct {
	username      string
	passwordStdin bool
}

func (a *access) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.username, "username", "", "User name for the repository")
	cmd.Flags().BoolVar(&a.passwordStdin, "password-stdin", false, "Read the password for --username from the standard input")
}

// maxPassword is how many bytes of a password are read.
const maxPassword = 64 << 10

// credentials returns those of the command line; none if it gives none.
func (a *access) credentials(in io.Reader) (chart.Credentials, error) {
	switch {
	case a.username == "" && !a.passwordStdin:
		return chart.Credentials{}, nil
	case a.username == "" || !a.passwordStdin:
		return chart.Credentials{}, errors.New("--username and --password-stdin go together")
	}
	password, err := io.ReadAll(io.LimitReader(in, maxPassword))
	if err != nil {
		return chart.Credentials{}, fmt.Errorf("read the password from the standard input: %w", err)
	}
	return chart.Credentials{Username: a.username, Password: strings.TrimRight(string(password), "\r\n")}, nil
}

// credentialsFor returns the credentials for a source: those of the command line, else those of the
// Secrets in the hub that it names.
func (a *access) credentialsFor(ctx context.Context, env *cli.Env, source *v1alpha1.HelmSource) (chart.Credentials, error) {
	found, err := a.credentials(env.In)
	if err != nil {
		return found, err
	}
	if found.Username == "" && source.Credentials != nil {
		data, err := secret(ctx, env, source.Credentials.SecretRef.Name)
		if err != nil {
			return found, err
		}
		if found, err = chart.CredentialsFromSecret(data); err != nil {
			return found, fmt.Errorf("credentials of the repository: %w", err)
		}
	}
	if source.CASecretRef != nil {
		data, err := secret(ctx, env, source.CASecretRef.Name)
		if err != nil {
			return found, err
		}
		if found.CAFile, err = chart.AuthoritiesFromSecret(data); err != nil {
			return found, fmt.Errorf("authorities of the repository: %w", err)
		}
	}
	found.PlainHTTP, found.InsecureSkipTLS = source.PlainHTTP, source.InsecureSkipTLS
	return found, nil
}

// secret reads a Secret of the system namespace of the hub.
func secret(ctx context.Context, env *cli.Env, name string) (map[string][]byte, error) {
	hub, err := env.Hub()
	if err != nil {
		return nil, fmt.Errorf("credentials of the repository: %w; or give --username and --password-stdin", err)
	}
	c, err := hub.Client()
	if err != nil {
		return nil, err
	}
	found := &corev1.Secret{}
	key := client.ObjectKey{Namespace: env.SystemNamespace, Name: name}
	if err := c.Get(ctx, key, found); err != nil {
		return nil, fmt.Errorf("credentials of the repository: get Secret %s: %w; or give --username and --password-stdin", key, hub.Explain(err))
	}
	return found.Data, nil
}
