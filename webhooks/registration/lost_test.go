package registration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
}

// Deleting the Secret of the certificate authority does not stop a process that may not make it
// again: it goes on with the authority that is trusted, and says what to do.
func TestKeyring_ofASecretThatIsLost(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "waybill-system", Name: SecretName}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(made).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return forbidden("secrets")
		},
	}).Build()
	r := &Registrar{client: c, live: c, options: Options{
		Namespace: "waybill-system", Endpoint: ServiceEndpoint("waybill-system", "waybill-webhook"), Validity: time.Hour,
	}}
	first, err := r.keyring(t.Context(), start)
	require.NoError(t, err, "the chart has made it, empty")

	require.NoError(t, c.Delete(t.Context(), made))
	for reason, tc := range map[string]struct {
		after time.Duration
		goes  bool
	}{
		"it is trusted, and nothing is due": {time.Minute, true},
		"a rotation is due":                 {50 * time.Minute, true},
		"what has expired is of no use":     {2 * time.Hour, false},
	} {
		kept, err := r.keyring(t.Context(), start.Add(tc.after))
		require.ErrorContains(t, err, "waybill-system/"+SecretName, reason)
		require.ErrorContains(t, err, "`helm upgrade`", reason)
		assert.Equal(t, tc.goes, kept.Current != nil, reason)
		if tc.goes {
			assert.Equal(t, string(first.Current.PEM()), string(kept.Current.PEM()), reason)
		}
	}

	_, err = (&Registrar{client: c, live: c, options: r.options}).keyring(t.Context(), start)
	require.ErrorContains(t, err, "`helm upgrade`", "a new process has nothing to go on with")
}

// lock is a lock that cannot be made.
type lock struct {
	resourcelock.Interface
	err error
}

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }
func (*lock) Describe() string                                                  { return "waybill-system/" + LeaseName }

// A Lease that was deleted is asked for every other second: why there is no leader is said once.
func TestChartLease_saysTheWayOutOnce(t *testing.T) {
	var logged []string
	stub := &lock{err: forbidden("leases")}
	l := &chartLease{Interface: stub, log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})}
	for range 3 {
		require.ErrorIs(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{}), stub.err)
	}
	require.Len(t, logged, 1)
	assert.Contains(t, logged[0], "`helm upgrade`")
	assert.Contains(t, logged[0], LeaseName)

	stub.err = nil
	require.NoError(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{}))
	stub.err = apierrors.NewAlreadyExists(schema.GroupResource{}, LeaseName)
	require.Error(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{}))
	assert.Len(t, logged, 1, "another process was faster")
}
