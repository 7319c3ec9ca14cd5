package startup

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// CheckAccount returns an error if the value of --default-service-account, which programs that act and
// programs that admit have to be given alike, cannot be the name of a ServiceAccount.
func CheckAccount(name string) error {
	if name == "" {
		return nil
	}
	if wrong := apivalidation.ValidateServiceAccountName(name, false); len(wrong) > 0 {
		return fmt.Errorf("--default-service-account: invalid name %q: %s", name, strings.Join(wrong, "; "))
	}
	return nil
}
