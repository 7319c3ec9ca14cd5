package application_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
	"waybill.dev/waybill/test/program"
)

func rss(t *testing.T, pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	var out []string
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "VmHWM") || strings.HasPrefix(l, "VmRSS") {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
	}
	st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(st))
	return strings.Join(out, ", ") + " utime " + f[13] + " stime " + f[14]
}

func TestScale(t *testing.T) {
	const apps = 1000
	c := env.Start(t, env.Options{Name: "scale", Audit: true, CRDs: []string{crds}})
	cl, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: hub.NewScheme(t)})
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, cl.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "waybill-system"}}))
	const spaces = 20
	for i := range spaces {
		require.NoError(t, cl.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}}))
	}
	bin := "/tmp/scalebin"
	start := func() *env.Process {
		_, kc := bin, c.KubeconfigFile()
		p, err := program.Start(ctx, program.Options{Name: program.Sync, Bin: bin, Kubeconfig: kc, Args: []string{"--controllers=agent", "--cache-dir=" + t.TempDir()}})
		require.NoError(t, err)
		return p
	}
	t0 := time.Now()
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				ns, name := fmt.Sprintf("s%d", i%spaces), fmt.Sprintf("app-%d", i)
				l := map[string]string{"app": name, "tier": "web", "team": "a-team", "app.kubernetes.io/part-of": name, "app.kubernetes.io/name": name}
				an := map[string]string{v1alpha1.ApplicationAnnotation: name}
				a := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
				a.Spec.Type = "x"
				a.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
				for j := range 2 {
					m := metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%d", name, j), Labels: l, Annotations: an}
					d := deployment(m, 0)
					for _, o := range []client.Object{&corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"a": strings.Repeat("x", 500)}}, &corev1.Secret{ObjectMeta: m}, &corev1.ServiceAccount{ObjectMeta: m}, d,
						&appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{Replicas: new(int32), ServiceName: "x", Selector: d.Spec.Selector, Template: d.Spec.Template}}} {
						require.NoError(t, cl.Create(ctx, o))
					}
					for _, k := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
						a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Kind: k, Name: m.Name})
					}
					for _, k := range []string{"Deployment", "StatefulSet"} {
						a.Spec.Components = append(a.Spec.Components, v1alpha1.ApplicationComponent{Group: "apps", Kind: k, Name: m.Name})
					}
				}
				require.NoError(t, cl.Create(ctx, a))
			}
		})
	}
	for i := range apps {
		work <- i
	}
	close(work)
	wg.Wait()
	t.Logf("created in %s", time.Since(t0))

	ready := func(want int) int {
		list := &v1alpha1.ApplicationList{}
		require.NoError(t, cl.List(ctx, list))
		n := 0
		for i := range list.Items {
			a := &list.Items[i]
			owned := 0
			for _, c := range a.Status.Components {
				if c.Owned {
					owned++
				}
			}
			if a.Status.ComponentsReady == "10/10" && owned == 10 {
				n++
			}
		}
		return n
	}
	await := func(what string, p *env.Process, since time.Time) {
		for n := 0; n < apps; n = ready(apps) {
			if time.Since(since) > 3*time.Minute {
				t.Fatalf("%s: only %d", what, n)
			}
			time.Sleep(250 * time.Millisecond)
		}
		t.Logf("%s: %s; %s", what, time.Since(since), rss(t, p.PID()))
	}
	mark, _ := c.AuditMark(ctx)
	t0 = time.Now()
	p := start()
	await("all owned", p, t0)
	report := func(mark env.AuditMark) {
		rs, err := c.Requests(ctx, mark, env.Calls, func(r env.Request) bool { return strings.Contains(r.UserAgent, "waybill-sync") })
		require.NoError(t, err)
		count := map[string]int{}
		for _, r := range rs {
			count[r.Verb+" "+r.Resource+"/"+r.Subresource]++
		}
		t.Logf("requests: %v", count)
	}
	report(mark)
	time.Sleep(3 * time.Second)
	mark, _ = c.AuditMark(ctx)
	time.Sleep(5 * time.Second)
	t.Log("idle")
	report(mark)

	// changes
	type stamp struct{ at time.Time }
	var mu sync.Mutex
	pending := map[string]time.Time{}
	var lat []time.Duration
	w, err := cl.Watch(ctx, &v1alpha1.ApplicationList{})
	require.NoError(t, err)
	go func() {
		for e := range w.ResultChan() {
			if e.Type != watch.Modified {
				continue
			}
			a := e.Object.(*v1alpha1.Application)
			mu.Lock()
			for _, c := range a.Status.Components {
				if c.Kind == "Deployment" {
					k := a.Namespace + "/" + c.Name + "/" + fmt.Sprint(c.Health == "Current")
					if at, ok := pending[k]; ok {
						lat = append(lat, time.Since(at))
						delete(pending, k)
					}
				}
			}
			mu.Unlock()
		}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	broken := map[int]bool{}
	mark, _ = c.AuditMark(ctx)
	for range 2000 {
		<-tick.C
		i := rand.IntN(apps)
		ns, name := fmt.Sprintf("s%d", i%spaces), fmt.Sprintf("app-%d-0", i)
		broken[i] = !broken[i]
		st := "True"
		if broken[i] {
			st = "False"
		}
		go func(b bool) {
			mu.Lock()
			delete(pending, ns+"/"+name+"/true")
			delete(pending, ns+"/"+name+"/false")
			pending[ns+"/"+name+"/"+fmt.Sprint(!b)] = time.Now()
			mu.Unlock()
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Progressing","status":"%s","reason":"%s"},{"type":"Available","status":"True"}]}}`, st, map[bool]string{true: "ProgressDeadlineExceeded", false: "NewReplicaSetAvailable"}[b])
			_ = cl.Status().Patch(context.Background(), d, client.RawPatch("application/merge-patch+json", []byte(patch)))
		}(broken[i])
	}
	time.Sleep(2 * time.Second)
	mu.Lock()
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	t.Logf("changes: %d seen, %d pending, p50 %s p99 %s max %s; %s", len(lat), len(pending), lat[len(lat)/2], lat[len(lat)*99/100], lat[len(lat)-1], rss(t, p.PID()))
	mu.Unlock()
	report(mark)

	require.NoError(t, p.Kill())
	// wipe
	list := &v1alpha1.ApplicationList{}
	require.NoError(t, cl.List(ctx, list))
	for i := range list.Items {
		a := &list.Items[i]
		require.NoError(t, cl.Status().Patch(ctx, a, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"components":null,"componentsReady":null,"conditions":null,"installed":null}}`))))
	}
	mark, _ = c.AuditMark(ctx)
	t0 = time.Now()
	p = start()
	time.Sleep(2 * time.Second)
	for i := 0; i < 100; i++ {
		if n := ready(apps); n > apps-200 {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	t.Logf("cold: %s; %s", time.Since(t0), rss(t, p.PID()))
	report(mark)
}
