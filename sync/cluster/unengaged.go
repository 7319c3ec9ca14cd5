package cluster

import (
	"fmt"

	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Unengaged returns a client for the metadata of objects of a cluster that is not engaged, or not any
// more. What the API server sends is bounded as that of others is. release must be called when the
// client is not needed any more.
func (r *Registry) Unengaged(config *rest.Config) (client metadata.Interface, release func(), err error) {
	var l *link
	l, err = newLink(r.own(config), r.options, func() {}, func(err error) { go l.end(err) })
	if err != nil {
		return nil, nil, err
	}
	if client, err = metadata.NewForConfig(l.config); err != nil {
		return nil, nil, fmt.Errorf("build client: %w", err)
	}
	return client, func() { l.end(ErrNotEngaged) }, nil
}
