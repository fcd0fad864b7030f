package plan

import (
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// API is where the HTTP API is served; an empty address is off.
type API struct {
	Pos  Pos
	HTTP string // host:port; at level 2 without a host it is every address
	// Token is what a client of level 2 has to show; without one the API is for this
	// machine alone, whatever HTTP says.
	Token string

	// Of level 1.
	Open      bool // clients of this machine need no token
	Tokens    []APIToken
	Password  string // bcrypt
	Cert, Key string // files, PEM
	Audit     string // file; empty is none
}

// APIToken is a token that clients of the API may show.
type APIToken struct {
	Pos    Pos
	Name   string
	Scope  string // read, operate or admin
	SHA256 string // of the token, in hexadecimal
}

// ZoneStore is the file of the zones that are managed through the API; an empty path is
// none.
type ZoneStore struct {
	Pos    Pos
	Path   string
	Serial string // increment or date: how a serial grows that nobody states
}

// TSIGKey is a key that transfers are signed with (RFC 8945).
type TSIGKey struct {
	Pos       Pos
	Name      string
	Algorithm string
	Secret    string // base64
}

// Same tells whether two plans want the same API, wherever they say so.
func (a API) Same(b API) bool {
	a.Pos, b.Pos = Pos{}, Pos{}
	plain := func(all []APIToken) (out []APIToken) {
		for _, t := range all {
			t.Pos = Pos{}
			out = append(out, t)
		}
		return out
	}
	a.Tokens, b.Tokens = plain(a.Tokens), plain(b.Tokens)
	return reflect.DeepEqual(a, b)
}

// Same tells whether two plans want the same store, wherever they say so.
func (z ZoneStore) Same(b ZoneStore) bool {
	z.Pos, b.Pos = Pos{}, Pos{}
	return z == b
}

const mendToken = "make one with: waymark token"

func (c *checker) api() {
	a := c.plan.API
	if a.HTTP == "" || c.plan.Level2 {
		return
	}
	host, _, err := net.SplitHostPort(a.HTTP)
	addr, addrErr := netip.ParseAddr(host)
	if err != nil || addrErr != nil {
		c.add(a.Pos, "write for example 127.0.0.1:8053", "api.listen: %s is no address with a port", a.HTTP)
		return
	}
	c.apiAccess(a, addr)
	c.apiTokens(a)
	if a.Password != "" && !strings.HasPrefix(a.Password, "$2") {
		c.add(c.plan.At("api.password"), "make one with: waymark password", "api.password: it is not a bcrypt hash")
	}
	if (a.Cert == "") != (a.Key == "") {
		c.add(c.plan.At("api.tls"), "write both", "api.tls: cert and key belong together")
	}
	c.readable("api.tls.cert", a.Cert)
	c.readable("api.tls.key", a.Key)
	c.folder("api.audit", a.Audit)
}

// apiAccess finds an API that nobody, or everybody, could use.
func (c *checker) apiAccess(a API, addr netip.Addr) {
	if len(a.Tokens) == 0 && a.Password == "" && !a.Open {
		c.add(a.Pos, mendToken+", and write what it prints under api: tokens:, or write open: true for everyone on this machine", "api.listen: nobody could ask: there are no tokens")
	}
	if len(a.Tokens) == 0 && a.Password == "" && a.Open && !addr.IsLoopback() {
		c.add(a.Pos, mendToken+", or listen on 127.0.0.1", "api.listen: other machines can reach %s, and there are no tokens", a.HTTP)
	}
}

// apiTokens finds tokens that are none, or have one name.
func (c *checker) apiTokens(a API) {
	names := map[string]bool{}
	for _, t := range a.Tokens {
		if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != 32 {
			c.add(t.Pos, mendToken, "api.tokens: %s: sha256 is not 64 hexadecimal digits", t.Name)
		}
		if names[t.Name] || t.Name == "" {
			c.add(t.Pos, "give each a name of its own", "api.tokens: the name %q is there twice, or is none", t.Name)
		}
		names[t.Name] = true
	}
}

// readable finds a file that cannot be read.
func (c *checker) readable(key, file string) {
	if file == "" {
		return
	}
	f, err := os.Open(file)
	if err != nil {
		c.add(c.plan.At(key), "create it, or let the user that the server runs as read it", "%s: %v", key, err)
		return
	}
	_ = f.Close()
}

// folder finds a file whose folder is not there.
func (c *checker) folder(key, file string) {
	if file == "" {
		return
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		c.add(c.plan.At(key), "create it, owned by the user that the server runs as", "%s: there is no folder %s", key, filepath.Dir(file))
	}
}

func (c *checker) zoneStore() {
	c.folder("zonestore.path", c.plan.ZoneStore.Path)
	seen := map[string]bool{}
	for _, k := range c.plan.Keys {
		if secret, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || len(secret) == 0 {
			c.add(k.Pos, "make one with: head -c 32 /dev/urandom | base64", "keys: %s: the secret is not base64", k.Name)
		}
		if name := strings.ToLower(strings.TrimSuffix(k.Name, ".")); seen[name] {
			c.add(k.Pos, "give each a name of its own", "keys: %s is there twice", k.Name)
		} else {
			seen[name] = true
		}
	}
}
