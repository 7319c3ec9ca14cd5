package contents

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// findConfiguration adds the ConfigMaps, Secrets and ServiceAccounts that Pods use.
func (s *survey) findConfiguration(ctx context.Context) error {
	for _, u := range s.uses {
		var err error
		switch u.GroupKind {
		case accountKind:
			err = s.addAccount(ctx, u)
		case configMapKind, secretKind:
			err = s.fetch(ctx, u.id, u.reason, u.optional)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addAccount adds a ServiceAccount, and the Secrets by which its Pods pull images. That of name default
// is in every namespace already.
func (s *survey) addAccount(ctx context.Context, u use) error {
	if s.accounts.Has(u.name) {
		return nil
	}
	s.accounts.Insert(u.name)
	account := s.objects[u.id].Unstructured
	if account == nil {
		var err error
		account, err = s.get(ctx, accountKind, u.name)
		switch {
		case apierrors.IsNotFound(err):
			s.miss(u.id, u.reason+": does not exist")
			return nil
		case err != nil:
			return err
		}
	}
	typed := &corev1.ServiceAccount{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(account.Object, typed); err != nil {
		return fmt.Errorf("read ServiceAccount %q in namespace %q: %w", u.name, s.namespace, err)
	}
	for _, ref := range typed.ImagePullSecrets {
		if err := s.fetch(ctx, id{secretKind, ref.Name}, fmt.Sprintf("imagePullSecrets of ServiceAccount %q", u.name), true); err != nil {
			return err
		}
	}
	if u.name != defaultAccount {
		return s.add(account, u.reason)
	}
	if len(typed.ImagePullSecrets) > 0 {
		s.leave(u.id, "it is in every namespace; in another one, add its imagePullSecrets there")
	}
	return nil
}

var (
	roleKind    = schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}
	bindingKind = schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}
)

// findRoles adds what gives rights in the namespace to the ServiceAccounts of the application. What
// gives them to all ServiceAccounts is not the application's.
func (s *survey) findRoles(ctx context.Context) error {
	accounts := s.accounts.Clone()
	for key := range s.objects {
		if key.GroupKind == accountKind {
			accounts.Insert(key.name)
		}
	}
	if accounts.Len() == 0 {
		return nil
	}
	var roles []use
	err := s.list(ctx, bindingKind.WithVersion("v1"), func(o *unstructured.Unstructured) error {
		binding := &rbacv1.RoleBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
			return fmt.Errorf("read RoleBinding %q in namespace %q: %w", o.GetName(), s.namespace, err)
		}
		account := s.boundAccount(binding, accounts)
		if account == "" {
			return nil
		}
		if binding.RoleRef.Kind == roleKind.Kind {
			roles = append(roles, use{id: id{roleKind, binding.RoleRef.Name}, reason: fmt.Sprintf("role of RoleBinding %q", binding.Name)})
		}
		return s.add(o, fmt.Sprintf("gives rights to ServiceAccount %q", account))
	})
	if err != nil {
		return err
	}
	for _, role := range roles {
		if err := s.fetch(ctx, role.id, role.reason, false); err != nil {
			return err
		}
	}
	return nil
}

// boundAccount returns the first of the ServiceAccounts that a RoleBinding names; empty if it names none.
func (s *survey) boundAccount(binding *rbacv1.RoleBinding, accounts sets.Set[string]) string {
	i := slices.IndexFunc(binding.Subjects, func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == s.namespace && accounts.Has(subject.Name)
	})
	if i < 0 {
		return ""
	}
	return binding.Subjects[i].Name
}
