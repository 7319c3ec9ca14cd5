package contents

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// user is a Pod, or a workload with a Pod template.
type user struct{ kind, name string }

// String returns the user for people.
func (u user) String() string { return fmt.Sprintf("%s %q", u.kind, u.name) }

// use is an object that a Pod or a Pod template names.
type use struct {
	id
	// reason says where it is named.
	reason   string
	optional bool
	// ephemeral: a claim that is deleted with its Pod.
	ephemeral bool
}

const defaultAccount = "default"

// claimsOf returns the claims that a Pod names; podName is empty for a template.
func claimsOf(u user, spec *corev1.PodSpec, podName string) []use {
	var uses []use
	for _, v := range spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			uses = append(uses, use{id: id{claimKind, v.PersistentVolumeClaim.ClaimName}, reason: fmt.Sprintf("volume %q of %s", v.Name, u)})
		case v.Ephemeral != nil && podName != "":
			uses = append(uses, use{
				id: id{claimKind, podName + "-" + v.Name}, ephemeral: true,
				reason: fmt.Sprintf("ephemeral volume %q of %s: it is deleted with the Pod", v.Name, u),
			})
		}
	}
	return uses
}

// configurationOf returns the ConfigMaps, Secrets and ServiceAccount that a Pod or a template names.
func configurationOf(u user, spec *corev1.PodSpec) []use {
	c := &collector{user: u}
	for _, v := range spec.Volumes {
		c.volume(v)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c.environment(list[i].Env, list[i].EnvFrom)
		}
	}
	for i := range spec.EphemeralContainers {
		c.environment(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for _, ref := range spec.ImagePullSecrets {
		c.secret(ref.Name, "imagePullSecrets", true) // kubelets pull without one that is missing
	}
	c.add(id{accountKind, cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, defaultAccount)}, "serviceAccountName", false)
	return c.uses
}

// collector collects what one user names.
type collector struct {
	user user
	uses []use
}

func (c *collector) add(named id, where string, optional bool) {
	if named.name != "" {
		c.uses = append(c.uses, use{id: named, reason: fmt.Sprintf("%s of %s", where, c.user), optional: optional})
	}
}

func (c *collector) secret(name, where string, optional bool) {
	c.add(id{secretKind, name}, where, optional)
}

func (c *collector) configMap(name, where string, optional *bool) {
	if name != rootCA { // every Pod has it, beside the token of its ServiceAccount
		c.add(id{configMapKind, name}, where, ptr.Deref(optional, false))
	}
}

func (c *collector) environment(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	const where = "environment"
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			c.configMap(ref.Name, where, ref.Optional)
		}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			c.secret(ref.Name, where, ptr.Deref(ref.Optional, false))
		}
	}
	for _, e := range from {
		if ref := e.ConfigMapRef; ref != nil {
			c.configMap(ref.Name, where, ref.Optional)
		}
		if ref := e.SecretRef; ref != nil {
			c.secret(ref.Name, where, ptr.Deref(ref.Optional, false))
		}
	}
}

func (c *collector) volume(v corev1.Volume) {
	where := fmt.Sprintf("volume %q", v.Name)
	switch {
	case v.ConfigMap != nil:
		c.configMap(v.ConfigMap.Name, where, v.ConfigMap.Optional)
	case v.Secret != nil:
		c.secret(v.Secret.SecretName, where, ptr.Deref(v.Secret.Optional, false))
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				c.configMap(source.ConfigMap.Name, where, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				c.secret(source.Secret.Name, where, ptr.Deref(source.Secret.Optional, false))
			}
		}
	default:
		c.secret(driverSecret(v), where, false)
	}
}

// driverSecret returns the Secret that the driver of a volume is given; empty if there is none.
func driverSecret(v corev1.Volume) string {
	var ref *corev1.LocalObjectReference
	switch {
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	case v.AzureFile != nil:
		return v.AzureFile.SecretName
	}
	if ref == nil {
		return ""
	}
	return ref.Name
}
