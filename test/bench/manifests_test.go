package bench

import (
	"fmt"
	"strings"
)

// configMapManifest returns a ConfigMap of 2 KB. A different mark changes its content.
func configMapManifest(namespace, name, mark string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
  namespace: %s
data:
  mark: %q
  text: %s
`, name, namespace, mark, strings.Repeat("0123456789abcdef", 120))
}

func itemName(i int) string { return fmt.Sprintf("item-%04d", i) }

// configMapFiles returns n ConfigMaps, one per file.
func configMapFiles(namespace string, n int, mark string) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		name := itemName(i)
		files[name+".yaml"] = configMapManifest(namespace, name, mark)
	}
	return files
}

// appManifests returns the four objects that each of many small GitSyncs delivers. A different
// mark, a number of seconds, changes all four.
func appManifests(namespace, name string, mark int) []string {
	meta := fmt.Sprintf("metadata: {name: %s, namespace: %s, labels: {app: %s}, annotations: {mark: %q}}\n", name, namespace, name, fmt.Sprint(mark))
	return []string{
		"apiVersion: v1\nkind: ServiceAccount\n" + meta,
		"apiVersion: v1\nkind: Service\n" + meta + fmt.Sprintf("spec:\n  selector: {app: %s}\n  ports: [{name: http, port: 80}]\n", name),
		"apiVersion: apps/v1\nkind: Deployment\n" + meta + fmt.Sprintf(`spec:
  replicas: 0
  minReadySeconds: %d
  selector:
    matchLabels: {app: %s}
  template:
    metadata:
      labels: {app: %s}
    spec:
      serviceAccountName: %s
      containers:
      - name: web
        image: nginx:1.29-alpine
        ports: [{name: http, containerPort: 80}]
        resources: {requests: {cpu: 10m, memory: 16Mi}}
`, mark, name, name, name),
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\n" + meta + fmt.Sprintf(`spec:
  rules:
  - host: %s.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: %s, port: {name: http}}}
`, name, name),
	}
}
