package clusters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/complete"
	"waybill.dev/waybill/cmd/internal/output"
)

// remove is the command `cluster remove`.
type remove struct {
	env     *cli.Env
	admin   admin
	abandon bool
	dryRun  bool
	yes     bool
	timeout time.Duration
}

func newRemove(env *cli.Env) *cobra.Command {
	o := &remove{env: env}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a cluster from the hub",
		Long: `Remove a cluster from the hub.

Deletes the KubernetesCluster, waits until it is gone, which says what it waits for, and deletes the
Secret with its kubeconfig, if ` + "`waybill cluster add`" + ` made it. With --kubeconfig, what that made in
the cluster is deleted as well; else the message says what stays.

What GitSyncs have delivered to the cluster is deleted there, namespaces with all that is in them
included, and so is what definitions enforce. Other installations are not: the KubernetesCluster
waits until they are deleted. --abandon leaves everything in the cluster (spec.onDelete).`,
		Example: `  waybill cluster remove berlin --kubeconfig berlin.kubeconfig

  # A cluster that does not exist any more
  waybill cluster remove berlin --abandon`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Names(env, v1alpha1.KubernetesClusterKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	o.admin.addFlags(env, flags)
	flags.BoolVar(&o.abandon, "abandon", false, "Leave in the cluster what is there, and do not wait for it")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Show what would be deleted, without deleting anything")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait at most")
	return cmd
}

func (o *remove) run(cmd *cobra.Command, name string) error {
	if o.env.NamesCluster() {
		return errors.New("clusters are removed from the hub: leave out --cluster")
	}
	ctx, cancel := o.env.Context(cmd, o.timeout)
	defer cancel()
	key := client.ObjectKey{Namespace: home(o.env), Name: name}
	hub, err := o.env.Hub()
	if err != nil {
		return err
	}
	e, err := lookUp(ctx, hub, key)
	switch {
	case err != nil:
		return err
	case e.cluster == nil && e.tokenSecret() == "":
		return fmt.Errorf("no KubernetesCluster %s in the hub: `waybill get clusters -A` lists them", key)
	}
	var in *outside
	if o.admin.given() {
		if in, err = o.admin.connect(ctx, o.env, name); err != nil {
			return err
		}
		if e.cluster != nil && e.cluster.Status.UID != "" && e.cluster.Status.UID != in.uid {
			return fmt.Errorf("KubernetesCluster %s is bound to the cluster with UID %s; the kubeconfig leads to the one with UID %s: --kubeconfig and --context are those of the cluster, and --hub-kubeconfig and --hub-context those of the hub", key, e.cluster.Status.UID, in.uid)
		}
	}
	if e.cluster != nil && !o.yes {
		fmt.Fprintln(o.env.ErrOut, consequence(ctx, e, o.abandon))
	}
	if goOn, err := o.confirm(key); err != nil || !goOn {
		return err
	}
	if err := o.delete(ctx, e); err != nil {
		return err
	}
	return o.clean(ctx, e, in)
}

// confirm asks whether to go on.
func (o *remove) confirm(key client.ObjectKey) (bool, error) {
	if o.yes || o.dryRun {
		return true, nil
	}
	fmt.Fprintf(o.env.ErrOut, "Remove KubernetesCluster %s? (y/N) ", key)
	line, err := bufio.NewReader(o.env.In).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	if err != nil && (answer == "" || !errors.Is(err, io.EOF)) {
		fmt.Fprintln(o.env.ErrOut)
		return false, errors.New("no answer: use --yes to go on without confirmation")
	}
	if answer == "y" || answer == "yes" {
		return true, nil
	}
	fmt.Fprintln(o.env.ErrOut, "Nothing is deleted.")
	return false, cli.ErrNegative
}

// delete deletes the KubernetesCluster, and waits until it is gone.
func (o *remove) delete(ctx context.Context, e *entry) error {
	kc := e.cluster
	if kc == nil {
		return nil
	}
	if o.dryRun {
		tell(o.env.Out, "hub", kc, "would be deleted")
		return nil
	}
	if o.abandon && kc.GetOnDelete() != v1alpha1.DeleteAbandon {
		before := kc.DeepCopy()
		kc.Spec.OnDelete = v1alpha1.DeleteAbandon
		if err := e.client.Patch(ctx, kc, client.MergeFrom(before), client.FieldOwner(cli.FieldManager)); err != nil {
			return fmt.Errorf("set spec.onDelete of %s: %w", describe(kc), e.hub.Explain(err))
		}
	}
	if err := client.IgnoreNotFound(e.client.Delete(ctx, kc)); err != nil {
		return fmt.Errorf("delete %s: %w", describe(kc), e.hub.Explain(err))
	}
	if err := o.awaitGone(ctx, e); err != nil {
		return err
	}
	tell(o.env.Out, "hub", kc, "deleted")
	return nil
}

// goneEvery is how often it is asked whether a KubernetesCluster is gone.
const goneEvery = 200 * time.Millisecond

// awaitGone waits until the KubernetesCluster is gone, and shows what it waits for. It asks rather than
// watches: the object may go before a watch begins, which would never show it.
func (o *remove) awaitGone(ctx context.Context, e *entry) error {
	progress := output.NewProgress(o.env.ErrOut, describe(e.cluster))
	defer progress.Stop()
	var waitsFor string
	err := wait.PollUntilContextCancel(ctx, goneEvery, true, func(ctx context.Context) (bool, error) {
		live := &v1alpha1.KubernetesCluster{}
		err := e.client.Get(ctx, client.ObjectKeyFromObject(e.cluster), live)
		if apierrors.IsNotFound(err) || err == nil && live.UID != e.cluster.UID {
			return true, nil
		}
		waitsFor = condition(live, v1alpha1.ReadyCondition).Message
		progress.Update(waitsFor)
		return false, err
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s is being deleted, and not gone in time: %s", describe(e.cluster), waitsFor)
	default:
		return fmt.Errorf("wait for %s: %w", describe(e.cluster), e.hub.Explain(err))
	}
}

// clean deletes what `cluster add` made, in the cluster first: the Secret of the hub says which token it is.
func (o *remove) clean(ctx context.Context, e *entry, in *outside) error {
	a := access{namespace: o.env.SystemNamespace}
	token := e.tokenSecret()
	switch {
	case in != nil && token != "":
		if err := o.cleanOutside(ctx, a, in, token); err != nil {
			return err
		}
	case token != "":
		o.env.Warnf("in the cluster, Secret %s in %s stays, with a token that counts until it is deleted, and so do ServiceAccount and ClusterRoleBinding %s: "+
			"--kubeconfig, of an administrator there, has them deleted", token, a.namespace, accessName)
	}
	if token == "" {
		return nil // its Secret was not created by `cluster add`
	}
	if !o.dryRun {
		if err := client.IgnoreNotFound(e.client.Delete(ctx, e.secret)); err != nil {
			return fmt.Errorf("delete %s in the hub: %w", describe(e.secret), e.hub.Explain(err))
		}
	}
	tell(o.env.Out, "hub", e.secret, deleted(o.dryRun))
	return nil
}

// cleanOutside deletes the token and, if that was the last one, the account that it is of.
func (o *remove) cleanOutside(ctx context.Context, a access, in *outside, token string) error {
	all, err := a.tokens(ctx, in)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = a.namespace, token
	gone := []client.Object{secret}
	others := 0
	for i := range all {
		if all[i].Name != token {
			others++
		}
	}
	if others == 0 {
		made := a.made()[1:] // without the namespace
		slices.Reverse(made)
		gone = append(append(gone, a.binding(interimName, a.role)), made...)
	}
	for _, object := range gone {
		err := in.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && !o.dryRun {
			err = in.Delete(ctx, object)
		}
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("delete %s in %s: %w", describe(object), in.name, in.cluster.Explain(err))
		default:
			tell(o.env.Out, in.name, object, deleted(o.dryRun))
		}
	}
	stays := fmt.Sprintf("namespace %s and the CustomResourceDefinitions stay", a.namespace)
	if others > 0 {
		stays += fmt.Sprintf(", and so does ServiceAccount %s, of which others have %s", accessName, output.Count(others, "token"))
	}
	fmt.Fprintf(o.env.Out, "%s: %s\n", in.name, stays)
	return nil
}

func deleted(dryRun bool) string {
	if dryRun {
		return "would be deleted"
	}
	return "deleted"
}
