package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/intake"
)

const (
	// pageSize is how many installations the API server is asked for at a time.
	pageSize = 50

	// maxLookups is how many requests look installations up at a time: each holds one installation, of a
	// megabyte or more.
	maxLookups = 4
)

// valuesUsers finds the installations that take values from an object. Any user who may write a ConfigMap
// causes a look-up of them, and they may be a hundred megabytes: so they are read one by one, and nothing is
// kept of them but what matters here.
type valuesUsers struct {
	client rest.Interface
	turns  *intake.Budget
}

func newValuesUsers(client rest.Interface) *valuesUsers {
	return &valuesUsers{client: client, turns: intake.NewBudget(maxLookups)}
}

// valuesUser is what matters of an ApplicationInstallation.
type valuesUser struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		ApplicationRef v1alpha1.ApplicationReference `json:"applicationRef"`
		ValuesFrom     []v1alpha1.ValuesReference    `json:"valuesFrom"`
	} `json:"spec"`
}

// each calls visit for every installation of a namespace; for none in a cluster without the kind.
func (v *valuesUsers) each(ctx context.Context, namespace string, visit func(*valuesUser)) error {
	release, err := v.turns.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer release()
	for next := ""; ; {
		next, err = v.page(ctx, namespace, next, visit)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil || next == "" {
			return err
		}
	}
}

// page reads one page, and returns where the next one begins; empty if there is none.
func (v *valuesUsers) page(ctx context.Context, namespace, at string, visit func(*valuesUser)) (next string, err error) {
	body, err := v.client.Get().AbsPath("/apis", v1alpha1.Group, v1alpha1.GroupVersion.Version, "namespaces", namespace, applicationInstallationResource).
		Param("limit", strconv.Itoa(pageSize)).Param("continue", at).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // it was read
	if next, err = readPage(body, visit); err != nil {
		return "", fmt.Errorf("read applicationinstallations: %w", err)
	}
	return next, nil
}

// readPage reads a list, item by item.
func readPage(from io.Reader, visit func(*valuesUser)) (next string, err error) {
	d := json.NewDecoder(from)
	if _, err := d.Token(); err != nil {
		return "", err
	}
	for d.More() {
		field, err := d.Token()
		if err != nil {
			return "", err
		}
		switch field {
		case "metadata":
			var list metav1.ListMeta
			err, next = d.Decode(&list), list.Continue
		case "items":
			err = readItems(d, visit)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return "", err
		}
	}
	_, err = d.Token() // a list that was cut off has no end
	return next, err
}

func readItems(d *json.Decoder, visit func(*valuesUser)) error {
	if begin, err := d.Token(); err != nil || begin == nil {
		return err
	}
	for d.More() {
		item := &valuesUser{}
		if err := d.Decode(item); err != nil {
			return err
		}
		visit(item)
	}
	_, err := d.Token()
	return err
}
