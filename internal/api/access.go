package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/waymark-dns/waymark/internal/plan"
)

// AccessOf is who may ask by a plan of level 1.
func AccessOf(p plan.API) (Access, error) {
	a := Access{Open: p.Open, Password: p.Password}
	for _, t := range p.Tokens {
		scope, ok := ParseScope(t.Scope)
		hash, err := hex.DecodeString(t.SHA256)
		if !ok || err != nil || len(hash) != sha256.Size {
			return a, fmt.Errorf("serving the API: token %s is not one", t.Name)
		}
		a.Tokens = append(a.Tokens, Token{Name: t.Name, Scope: scope, Hash: [sha256.Size]byte(hash)})
	}
	return a, nil
}
