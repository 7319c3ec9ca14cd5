package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
)

// entry is a definition in the catalog.
type entry struct {
	Name, Title, Description, Link, Logo string
	Method, Default, Versions            string
	Documentation, Source                string
	Installations                        int32
	// Behind are the installations that are not in the default version.
	Behind     int32
	Deprecated int
}

func (s *server) catalog(w http.ResponseWriter, r *http.Request) {
	text, state := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("text"))), r.URL.Query().Get("state")
	var entries []entry
	for _, d := range visible[*v1alpha1.ApplicationDefinition](r.Context(), viewerOf(r), s.inventory.definitions) {
		if e := newEntry(d); strings.Contains(strings.ToLower(e.Name+" "+e.Title+" "+e.Description), text) && (state != stateBehind || e.Behind > 0) {
			entries = append(entries, e)
		}
	}
	s.show(w, r, "catalog", http.StatusOK, page{
		Title: "Catalog", Area: "catalog", Kinds: []string{v1alpha1.ApplicationDefinitionKind},
		Model: map[string]any{"Text": r.URL.Query().Get("text"), "State": state, "Entries": entries},
	})
}

func newEntry(d *v1alpha1.ApplicationDefinition) entry {
	e := entry{
		Name: d.Name, Title: d.Spec.DisplayName, Description: d.Spec.Description, Method: string(d.GetMethod()),
		Default: d.Spec.DefaultVersion, Versions: d.Status.Versions,
		Documentation: webLink(d.Spec.DocumentationURL), Source: webLink(d.Spec.SourceURL),
		Link: "/catalog/" + url.PathEscape(d.Name),
	}
	if e.Title == "" {
		e.Title = d.Name
	}
	if d.Spec.Logo != nil {
		e.Logo = "/logos/" + url.PathEscape(d.Name)
	}
	for _, use := range d.Status.UsedBy {
		e.Installations += use.Count
	}
	e.Behind = behind(d)
	for _, v := range d.Spec.Versions {
		if v.Deprecated {
			e.Deprecated++
		}
	}
	return e
}

// webLink returns an address if it leads to a web server; empty for all others.
func webLink(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

// maxLogo is how large a picture is that is served, in bytes: what the API takes, which counts characters of base64. The CRD of the hub
// may be older.
const maxLogo = 87384 / 4 * 3

// logo serves the picture of a definition. A script in it does not run, even where the picture is
// opened as a page.
func (s *server) logo(w http.ResponseWriter, r *http.Request) {
	found, ok, err := s.inventory.definitions.informer.GetStore().GetByKey(r.PathValue("name"))
	definition, known := found.(*v1alpha1.ApplicationDefinition)
	if err != nil || !ok || !known || definition.Spec.Logo == nil || s.inventory.definitions.stands().State == forbidden ||
		len(definition.Spec.Logo.Data) > maxLogo || !viewerOf(r).sees(r.Context(), s.inventory.definitions, "") {
		http.NotFound(w, r)
		return
	}
	kind := "image/png"
	if definition.Spec.Logo.Format == "svg+xml" {
		kind = "image/svg+xml"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	_, _ = w.Write(definition.Spec.Logo.Data) // the browser may have left
}
