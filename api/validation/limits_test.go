package validation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// What is just at a limit is accepted; other tests refuse what is one beyond.
func TestValidate_acceptsWhatIsJustAtALimit(t *testing.T) {
	t.Run("name of a release", func(t *testing.T) {
		assert.Empty(t, validation.ValidateApplicationInstallation(installation(func(i *v1alpha1.ApplicationInstallation) { i.Name = strings.Repeat("a", 53) }), nil))
	})
	t.Run("values", func(t *testing.T) {
		block := "a: b\n#" + strings.Repeat("b", 512<<10-6)
		assert.Empty(t, validation.ValidateApplicationInstallation(installation(withValuesBlock(block)), nil))
	})
	t.Run("kinds of every letter and digit", func(t *testing.T) {
		for _, kind := range []string{"AZaz09", "Z9", "a0"} {
			assert.Empty(t, validation.ValidateApplication(application(withComponents(v1alpha1.ApplicationComponent{Kind: kind})), nil), kind)
		}
	})
	t.Run("tags", func(t *testing.T) {
		snapshot := &v1alpha1.ApplicationSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		snapshot.Spec.Tags = map[string]string{strings.Repeat("k", 317): strings.Repeat("v", 1024)}
		for _, err := range validation.ValidateApplicationSnapshotContent(snapshot) {
			assert.NotContains(t, err.Field, "tags")
		}
	})
	t.Run("logo", func(t *testing.T) {
		logo := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 64<<10-8)...)
		for _, err := range validation.ValidateApplicationDefinition(definition(func(d *v1alpha1.ApplicationDefinition) {
			d.Spec.Logo = &v1alpha1.Logo{Format: "png", Data: logo}
		}), nil) {
			assert.NotContains(t, err.Field, "logo")
		}
	})
}

// Characters beside those of kinds are none of them.
func TestValidateApplication_refusesKindsWithOtherCharacters(t *testing.T) {
	for _, kind := range []string{"A@", "A[", "a`", "a{", "a/", "a:", "ä"} {
		assert.NotEmpty(t, validation.ValidateApplication(application(withComponents(v1alpha1.ApplicationComponent{Kind: kind})), nil), kind)
	}
}

// A selector with as many labels as expressions is not empty.
func TestApplicationWarnings_selectorOfBoth(t *testing.T) {
	a := application(withExpression("tier", metav1.LabelSelectorOpExists))
	a.Spec.Selector.MatchLabels = map[string]string{"app": "web"}
	assert.Empty(t, validation.ApplicationWarnings(a))
}
