package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/output"
	"waybill.dev/waybill/sync/cluster"
)

// add is the command `cluster add`.
type add struct {
	env   *cli.Env
	admin admin

	server       string
	role         string
	agent, seed  bool
	labels       map[string]string
	rotate       bool
	dryRun, wait bool
	timeout      time.Duration
	format       *output.Format
}

func newAdd(env *cli.Env) *cobra.Command {
	o := &add{env: env, format: output.NewFormat()}
	cmd := &cobra.Command{
		Use:   "add NAME --kubeconfig FILE",
		Short: "Bring a cluster in",
		Long: `Bring a cluster in.

In the cluster, a ServiceAccount with a token that does not expire is made in the system
namespace; in the hub, a Secret with a kubeconfig of just that token, and a KubernetesCluster,
in the system namespace unless -n says another one. Then it is waited for until the hub has
connected and, with --agent, until Waybill's own share runs there.

The administrator's kubeconfig is used here only, and may be one that runs a program. It is
neither stored nor sent to the hub. The address of the API server is taken from it, unless
--server says how the hub reaches it.

That token may do what the hub needs before anything is installed, and with --agent what installing
Waybill's own share takes. What charts consist of is for you to grant to the ServiceAccounts that
installations act as. With --role=cluster-admin, installations without a ServiceAccount can consist of
anything.

Running it again changes nothing but what other flags say; --rotate makes another token and
deletes the old one.`,
		Example: `  # A context of the kubeconfig that kubectl uses; the hub is its current context
  waybill cluster add berlin --context berlin --agent --label environment=production

  # Installations need no ServiceAccount there: the hub may write whatever charts consist of
  waybill cluster add berlin --context berlin --role cluster-admin

  # From a file of its own; what would be made
  waybill cluster add berlin --kubeconfig berlin.kubeconfig --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	o.admin.addFlags(env, flags)
	flags.StringVar(&o.server, "server", "", "Address at which the hub reaches the API server, as https://HOST:PORT; that of the kubeconfig unless given")
	flags.StringVar(&o.role, "role", "", "ClusterRole of the cluster that the hub gets there; the one it has, or else "+accessName+", with just what the hub needs, unless given")
	flags.BoolVar(&o.agent, "agent", false, "Have the hub install Waybill's own share of the cluster (spec.agent)")
	flags.BoolVar(&o.seed, "seed", false, "The cluster is a seed (spec.role)")
	flags.StringToStringVar(&o.labels, "label", nil, "Label of the KubernetesCluster, as KEY=VALUE; can be repeated")
	flags.BoolVar(&o.rotate, "rotate", false, "Make another token, and delete the old one")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show what would be made, without writing anything")
	flags.BoolVar(&o.wait, "wait", true, "Wait until the hub has connected")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait at most")
	o.format.AddFlag(cmd)
	cmd.Flag("output").Usage = "Print the manifests of what would be made as json or yaml, without the token, and write nothing"
	return cmd
}

// check rejects contradictory options before any cluster is asked.
func (o *add) check(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	switch {
	case len(problems) > 0:
		return fmt.Errorf("%q cannot be the name of a KubernetesCluster: %s", name, strings.Join(problems, "; "))
	case !o.admin.given():
		return errors.New("--kubeconfig or --context must say which cluster, as its administrator")
	case o.env.NamesCluster():
		return errors.New("clusters are brought in to the hub: leave out --cluster")
	case o.seed && o.agent:
		return errors.New("a seed runs a chart of its own: leave out --agent or --seed")
	case o.server != "" && !strings.HasPrefix(o.server, "https://"):
		return errors.New("--server must begin with https://")
	}
	return nil
}

// access returns what the hub gets in a cluster that has nothing of it yet.
func (o *add) access(ctx context.Context, agent bool) (access, error) {
	return access{namespace: o.env.SystemNamespace, role: cmp.Or(o.role, accessName)}.withAgent(ctx, agent)
}

// accessIn returns what the hub gets in a cluster. Unless --role says which one, the account keeps the ClusterRole
// that it has there.
func (o *add) accessIn(ctx context.Context, in *outside, agent bool) (a access, err error) {
	a = access{namespace: o.env.SystemNamespace, role: o.role}
	if a.role == "" {
		a.role = accessName
		if a, err = a.bound(ctx, in); err != nil {
			return a, err
		}
	}
	return a.withAgent(ctx, agent)
}

func (o *add) run(cmd *cobra.Command, name string) error {
	if err := o.check(name); err != nil {
		return err
	}
	wants := wanted{key: client.ObjectKey{Namespace: home(o.env), Name: name}, labels: o.labels, agent: o.agent, seed: o.seed}
	if o.format.Structured() {
		a, err := o.access(cmd.Context(), o.agent)
		if err != nil {
			return err
		}
		return printManifests(o.env.Out, o.format.String() == "json", a, wants)
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	hub, err := o.env.Hub()
	if err != nil {
		return err
	}
	in, err := o.admin.connect(ctx, o.env, name)
	if err != nil {
		return err
	}
	e, err := o.look(ctx, hub, in, wants)
	if err != nil {
		return err
	}
	if err := o.make(ctx, in, e, wants); err != nil || o.dryRun {
		return err
	}
	if o.wait {
		err = o.follow(ctx, e)
	}
	if err != nil || !o.wait {
		o.tellReplaced(in, e)
		return err
	}
	return o.dropReplaced(ctx, in, e)
}

// look reads what the hub has of that name, and has the hub check what is to be written before anything is
// made in the cluster.
func (o *add) look(ctx context.Context, hub *fleet.Cluster, in *outside, wants wanted) (*entry, error) {
	e, err := lookUp(ctx, hub, wants.key)
	if err != nil {
		return nil, err
	}
	if err := e.fits(ctx, wants.key, in.uid); err != nil {
		return nil, err
	}
	if other := e.sharedWith(ctx, wants.key, in.uid); other != nil {
		o.env.Warnf("KubernetesCluster %s leads to the same cluster: one of the two drives it, and the other is for GitSyncs only", client.ObjectKeyFromObject(other))
	}
	_, err = e.write(ctx, wants, true)
	return e, err
}

// make makes everything, in the cluster first.
func (o *add) make(ctx context.Context, in *outside, e *entry, wants wanted) error {
	a, err := o.accessIn(ctx, in, wants.object(e.cluster).Spec.Agent != nil)
	if err != nil {
		return err
	}
	if err := a.ensure(ctx, in, o.env.Out, o.dryRun); err != nil {
		return err
	}
	fmt.Fprintf(o.env.Out, "%s: the token of the hub %s\n", in.name, a.amount())
	server := in.server
	if o.server != "" {
		server.Server = o.server
	}
	if why := doubtful(server.Server); why != "" {
		o.env.Warnf("the hub may not reach %s, which %s: --server says another address", server.Server, why)
	}
	if o.dryRun {
		return o.wouldMake(ctx, a, in, e, wants)
	}
	token, err := o.token(ctx, a, in, e)
	if err != nil {
		return err
	}
	kubeconfig, err := in.kubeconfig(server, string(token.Data[corev1.ServiceAccountTokenKey]))
	if err == nil {
		err = o.verify(ctx, in, kubeconfig)
	}
	if err != nil {
		return o.undo(ctx, in, e, token, err)
	}
	what, err := e.writeSecret(ctx, wants.key, kubeconfig, token.Name)
	if err != nil {
		return o.undo(ctx, in, e, token, err)
	}
	tell(o.env.Out, "hub", e.secret, what)
	if what, err = e.write(ctx, wants, false); err != nil {
		return err
	}
	tell(o.env.Out, "hub", e.cluster, what)
	return nil
}

// wouldMake says what would be made that is not there.
func (o *add) wouldMake(ctx context.Context, a access, in *outside, e *entry, wants wanted) error {
	if e.tokenSecret() == "" || o.rotate {
		tell(o.env.Out, in.name, a.token(), made(true))
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = secretKey(wants.key).Namespace, secretKey(wants.key).Name
	switch {
	case e.secret == nil:
		tell(o.env.Out, "hub", secret, made(true))
	case o.rotate:
		tell(o.env.Out, "hub", secret, changed(true))
	}
	what, err := e.write(ctx, wants, true)
	if err == nil {
		tell(o.env.Out, "hub", wants.object(e.cluster), what)
	}
	return err
}

// token returns the Secret with the token that the hub has already, or else another one.
func (o *add) token(ctx context.Context, a access, in *outside, e *entry) (*corev1.Secret, error) {
	if name := e.tokenSecret(); name != "" && !o.rotate {
		kept := &corev1.Secret{}
		err := in.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: name}, kept)
		if err == nil && len(kept.Data[corev1.ServiceAccountTokenKey]) > 0 {
			return kept, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the token in %s: %w", in.name, in.cluster.Explain(err))
		}
	}
	made, err := a.newToken(ctx, in)
	if err == nil {
		tell(o.env.Out, in.name, made, "created, with a token")
	}
	return made, err
}

// undo deletes a token that the hub did not get, and returns why it did not.
func (o *add) undo(ctx context.Context, in *outside, e *entry, token *corev1.Secret, err error) error {
	if token.Name != e.tokenSecret() {
		_ = in.Delete(context.WithoutCancel(ctx), token) // it is not needed, because of the error
	}
	return err
}

// verify asks the cluster with what the hub gets. An address that only the hub reaches cannot be tried
// from here.
func (o *add) verify(ctx context.Context, in *outside, kubeconfig []byte) error {
	config, err := cluster.ParseKubeconfig(kubeconfig, cluster.KubeconfigOptions{})
	if err != nil {
		return fmt.Errorf("the kubeconfig for the hub: %w", err)
	}
	tried := fleet.NewHub(in.name, o.env.Prepared(config))
	c, err := tried.Client()
	if err == nil {
		err = seen(ctx, c, in.uid)
	}
	switch {
	case err == nil:
		fmt.Fprintf(o.env.Out, "%s: Kubernetes %s answers to the token at %s, from here\n", in.name, in.version, config.Host)
		return nil
	case o.server != "" && apierrors.ReasonForError(err) == "":
		o.env.Warnf("%s; whether the hub reaches %s is not known before it tries", tried.Explain(err), config.Host)
		return nil
	default:
		return fmt.Errorf("try the token in %s: %w", in.name, tried.Explain(err))
	}
}

// grantedWithin is how long an API server may take to notice a new binding.
const grantedWithin = 15 * time.Second

// seen waits until the token may be used, and compares which cluster answers to it.
func seen(ctx context.Context, c client.Client, uid string) error {
	namespace := &corev1.Namespace{}
	var last error
	err := wait.PollUntilContextTimeout(ctx, askEvery, grantedWithin, true, func(ctx context.Context) (bool, error) {
		last = c.Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace)
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) {
			return false, nil
		}
		return true, last
	})
	switch {
	case err != nil && last != nil:
		return last
	case err != nil:
		return err
	case string(namespace.UID) != uid:
		return fmt.Errorf("another cluster answers there, with UID %s", namespace.UID)
	}
	return nil
}

// dropReplaced deletes the tokens that others have replaced, of this run and of earlier ones that did not come so far.
func (o *add) dropReplaced(ctx context.Context, in *outside, e *entry) error {
	names := e.replaced()
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		old := &corev1.Secret{}
		old.Namespace, old.Name = o.env.SystemNamespace, name
		if err := client.IgnoreNotFound(in.Delete(ctx, old)); err != nil {
			return fmt.Errorf("delete the old token in %s: %w", in.name, in.cluster.Explain(err))
		}
		tell(o.env.Out, in.name, old, "deleted: its token counts no more")
	}
	return e.forgetReplaced(ctx)
}

// tellReplaced says which tokens are valid that the hub does not use any more.
func (o *add) tellReplaced(in *outside, e *entry) {
	if names := e.replaced(); len(names) > 0 {
		o.env.Warnf("%s: the replaced tokens in Secrets %s of namespace %s are still valid: run the command again, with --wait and without --rotate, to delete them when the hub has connected",
			in.name, strings.Join(names, ", "), o.env.SystemNamespace)
	}
}

// home is the namespace of the KubernetesCluster: the system namespace unless -n is given.
func home(env *cli.Env) string {
	if namespace, explicit := env.NamespaceOffline(); explicit {
		return namespace
	}
	return env.SystemNamespace
}
