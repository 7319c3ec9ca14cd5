package dashboard

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// noPrefix says that names of users have no prefix, as kube-apiserver has it.
const noPrefix = "-"

// redeem exchanges a code for a session.
func (d *oidcDoor) redeem(ctx context.Context, e errand, code string) (ticket, error) {
	config, provider, err := d.oauth(ctx)
	if err != nil {
		return ticket{}, err
	}
	ctx = oidc.ClientContext(ctx, d.client)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(e.Verifier))
	if err != nil {
		return ticket{}, fmt.Errorf("exchange the code at %s: %w", d.options.IssuerURL, err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return ticket{}, fmt.Errorf("%s has sent no ID token: does client %s have the scope openid?", d.options.IssuerURL, d.options.ClientID)
	}
	id, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: d.options.ClientID, Now: d.now}).Verify(ctx, raw)
	if err != nil {
		return ticket{}, fmt.Errorf("verify the ID token of %s: %w", d.options.IssuerURL, err)
	}
	if !same(id.Nonce, e.Nonce) {
		return ticket{}, fmt.Errorf("verify the ID token of %s: it is for another sign-in", d.options.IssuerURL)
	}
	name, groups, err := d.options.identity(id.Claims)
	if err != nil {
		return ticket{}, err
	}
	return ticket{ID: rand.Text(), Name: name, Groups: groups, Until: d.now().Add(d.lasts)}, checkIdentity(name, groups)
}

// identity returns the name and groups of a user by the claims of an ID token, as kube-apiserver does.
func (o OIDC) identity(read func(any) error) (name string, groups []string, err error) {
	var claims map[string]json.RawMessage
	if err := read(&claims); err != nil {
		return "", nil, fmt.Errorf("read the claims of the ID token: %w", err)
	}
	if err := json.Unmarshal(claims[o.UsernameClaim], &name); err != nil || name == "" {
		return "", nil, fmt.Errorf("the ID token has no claim %s that is a text: --oidc-username-claim names another", o.UsernameClaim)
	}
	if verified, said := claims["email_verified"]; said && o.UsernameClaim == "email" && string(verified) != "true" {
		return "", nil, errors.New("the provider has not verified your email address, by which you would be known")
	}
	name = o.usernamePrefix() + name
	if o.GroupsClaim == "" || claims[o.GroupsClaim] == nil {
		return name, nil, nil
	}
	var all []string
	if json.Unmarshal(claims[o.GroupsClaim], &all) != nil {
		one := ""
		if err := json.Unmarshal(claims[o.GroupsClaim], &one); err != nil {
			return "", nil, fmt.Errorf("claim %s of the ID token is neither a text nor a list of texts", o.GroupsClaim)
		}
		all = []string{one}
	}
	for _, group := range all {
		groups = append(groups, o.GroupsPrefix+group)
	}
	return name, groups, nil
}

// usernamePrefix is by default that of kube-apiserver: none for email addresses, and the issuer for all others.
func (o OIDC) usernamePrefix() string {
	if o.UsernamePrefix == "" && o.UsernameClaim != "email" {
		return o.IssuerURL + "#"
	}
	if o.UsernamePrefix == noPrefix {
		return ""
	}
	return o.UsernamePrefix
}
