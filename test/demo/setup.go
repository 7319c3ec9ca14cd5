package main

import (
	"context"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/observe"
	"waybill.dev/waybill/test/program"
)

// Credentials of the git server.
const (
	gitUser     = "reader"
	gitPassword = "only-for-the-demo"
)

// fromNothing starts everything that the story needs.
func fromNothing() chapter {
	return chapter{
		title: "From nothing",
		text:  "Real control planes, built from their Go modules; Pods run on a fake node.",
		steps: []step{
			{title: "build Waybill's programs", limit: 10 * time.Minute, run: (*stage).build},
			{title: "start the clusters hub, berlin and dublin", limit: 15 * time.Minute, run: (*stage).startClusters},
			{title: "start a git server, a Helm repository and an OCI registry", limit: long, run: (*stage).startServers},
			{title: "install Waybill in the hub: CRDs, waybill-webhook, waybill-sync", limit: long, run: (*stage).installHub},
			{title: "register berlin and dublin", limit: long, run: (*stage).register},
			{title: "start waybill-webhook and the agent for berlin and dublin", limit: long, run: (*stage).installUsers},
		},
	}
}

func (s *stage) build(ctx context.Context) error {
	bin, err := program.Build(ctx, program.Sync, program.Webhook, program.CLI)
	s.bin = bin
	return err
}

func (s *stage) startClusters(ctx context.Context) error {
	clusters, err := env.StartClusters(ctx,
		env.Options{Name: "hub"},
		env.Options{Name: "berlin", Pods: true},
		env.Options{Name: "dublin", Pods: true},
	)
	if err != nil {
		return err
	}
	s.hub, s.berlin, s.dublin = s.place(clusters[0]), s.place(clusters[1]), s.place(clusters[2])
	return nil
}

// startServers starts the three sources, and fills those of charts as examples/README.md says. The
// git repository stays empty until the story's first commit.
func (s *stage) startServers(ctx context.Context) error {
	var err error
	if s.server, err = env.StartGitServer(env.GitOptions{Username: gitUser, Password: gitPassword}); err != nil {
		return err
	}
	if s.repo, err = s.server.CreateRepo(ctx, "examples"); err != nil {
		return err
	}
	if s.charts, err = env.StartHelmRepo(env.Access{TLS: true}); err != nil {
		return err
	}
	if s.registry, err = env.StartRegistry(env.Access{TLS: true}); err != nil {
		return err
	}
	return s.publishCharts()
}

func (s *stage) publishCharts() error {
	folder, err := examples()
	if err != nil {
		return err
	}
	web, widgets := filepath.Join(folder, "charts", "web"), filepath.Join(folder, "charts", "widgets")
	if _, err := s.charts.Push(web, version("1.0.0", "1.28")); err != nil {
		return err
	}
	if _, err := s.charts.Push(web); err != nil {
		return err
	}
	_, err = s.registry.Push(widgets)
	return err
}

// version changes a chart to a version other than that in its Chart.yaml.
func version(chartVersion, appVersion string) func(*chart.Chart) {
	return func(c *chart.Chart) { c.Metadata.Version, c.Metadata.AppVersion = chartVersion, appVersion }
}

// installHub does what charts/waybill does if Waybill runs in the hub itself: here its programs run
// next to it.
func (s *stage) installHub(ctx context.Context) error { return s.installIn(ctx, s.hub) }

func (s *stage) installIn(ctx context.Context, p *place) error {
	root, err := env.Root()
	if err != nil {
		return err
	}
	if err := p.InstallCRDs(ctx, filepath.Join(root, "charts", "waybill", "crds")); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, p, "create", "namespace", system); err != nil {
		return err
	}
	return s.startPrograms(ctx, p)
}

// startPrograms starts what runs in a hub.
func (s *stage) startPrograms(ctx context.Context, p *place) error {
	if err := s.startWebhook(ctx, p); err != nil {
		return err
	}
	return s.startSync(ctx, p)
}

func (s *stage) startSync(ctx context.Context, p *place) error {
	cache := filepath.Join(filepath.Dir(p.KubeconfigFile()), "waybill-cache") // removed with the cluster
	return s.start(ctx, program.Options{
		Name: program.Sync, As: "waybill-sync of " + p.Name(), Bin: s.bin, Kubeconfig: p.KubeconfigFile(),
		Args: []string{"--cache-dir=" + cache},
	})
}

// startWebhook starts a webhook that registers by URL: there is no Service in front of a process
// outside of the cluster.
func (s *stage) startWebhook(ctx context.Context, p *place) error {
	address, err := env.FreeAddress()
	if err != nil {
		return err
	}
	return s.start(ctx, program.Options{
		Name: program.Webhook, As: "waybill-webhook of " + p.Name(), Bin: s.bin, Kubeconfig: p.KubeconfigFile(),
		Args: []string{"--listen=" + address, "--url=https://" + address},
	})
}

func (s *stage) start(ctx context.Context, o program.Options) error {
	process, err := program.Start(ctx, o)
	if err != nil {
		return err
	}
	s.programs = append(s.programs, running{name: o.As, process: process})
	return nil
}

// registerIn registers a cluster with a hub or seed.
func (s *stage) registerIn(ctx context.Context, at, p *place) error {
	secret := []string{"-n", system, "create", "secret", "generic", p.Name() + "-kubeconfig", "--from-file=value="}
	s.say.command("kubectl --context " + at.Name() + " " + shown(secret) + p.Name() + ".kubeconfig")
	secret[len(secret)-1] += p.KubeconfigFile()
	if _, err := at.Kubectl(ctx, "", secret...); err != nil {
		return err
	}
	return s.applyTo(ctx, at, "clusters/"+p.Name()+".yaml")
}

// register registers the user clusters with the hub or seed that drives them, which then installs their CRDs.
func (s *stage) register(ctx context.Context) error {
	for _, p := range s.users() {
		if err := s.registerIn(ctx, s.home(), p); err != nil {
			return err
		}
	}
	if err := s.home().until(ctx, kind("kubernetesclusters"), len(s.users()), observe.Ready); err != nil {
		return err
	}
	crds := observe.Of{GroupVersionResource: schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}}
	return each(ctx, s.users(), func(ctx context.Context, p *place) error {
		return p.until(ctx, crds, len(userKinds), func(o *observe.Object) bool {
			status, _, _ := observe.Condition(o, "Established")
			return userKinds[o.GetName()] && status == "True"
		})
	})
}

// userKinds are the CRDs that the hub installs in a user cluster.
var userKinds = map[string]bool{
	"applicationdefinitions.apps.waybill.dev":   true,
	"applicationinstallations.apps.waybill.dev": true,
	"applications.apps.waybill.dev":             true,
}

// installUsers starts, for each user cluster, the webhook for its own objects, so that its
// admission never crosses a network, and the agent that reconciles its Applications.
func (s *stage) installUsers(ctx context.Context) error {
	for _, p := range s.users() {
		if err := s.startWebhook(ctx, p); err != nil {
			return err
		}
		if err := s.start(ctx, program.Options{
			Name: program.Sync, As: "waybill-sync of " + p.Name(), Bin: s.bin, Kubeconfig: p.KubeconfigFile(),
			Args: []string{"--controllers=agent"},
		}); err != nil {
			return err
		}
	}
	return nil
}
