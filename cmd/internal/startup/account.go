package startup

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// AccountFlag is the flag that names what installations act as where nothing else does. Programs that act
// and programs that admit must be given the same.
const AccountFlag = "default-service-account"

// CheckAccount returns an error if the value of AccountFlag cannot be the name of a ServiceAccount.
func CheckAccount(name string) error {
	if name == "" {
		return nil
	}
	if wrong := apivalidation.ValidateServiceAccountName(name, false); len(wrong) > 0 {
		return fmt.Errorf("--%s: invalid name %q: %s", AccountFlag, name, strings.Join(wrong, "; "))
	}
	return nil
}
