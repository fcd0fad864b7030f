// Package match holds the conditions of policy rules, one file each.
package match

import "github.com/waymark-dns/waymark/internal/serve"

// Class matches questions of that class.
type Class uint16

// Match is part of policy.Matcher.
func (c Class) Match(r *serve.Request) bool { return r.Ask.Class == uint16(c) }
