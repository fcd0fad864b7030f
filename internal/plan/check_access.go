package plan

import (
	"encoding/hex"
	"fmt"
	"net/netip"
)

// secretSize is the octets of a cookie secret: the key of SipHash-2-4
// (RFC 9018 §4.4).
const secretSize = 16

func (c *checker) access() {
	a := c.plan.Access
	c.allowDeny("access", "access", a.Allow, a.Deny)
	first := map[string]Pos{}
	for i, l := range a.Listeners {
		path := fmt.Sprintf("access.listeners[%d]", i)
		c.listener(l.Pos, "access.listeners.listen", l.Listen)
		c.allowDeny(path, "access.listeners", l.Allow, l.Deny)
		if pos, ok := first[l.Listen.String()]; ok && l.Listen.Addr.IsValid() {
			c.add(l.Pos, "remove one", "access.listeners: %s is named twice, first at %s", l.Listen, pos)
			continue
		}
		first[l.Listen.String()] = l.Pos
	}
}

// allowDeny checks both lists of one place. The longer prefix decides, so one
// that is in both decides nothing.
func (c *checker) allowDeny(path, name string, allow, deny []netip.Prefix) {
	c.prefixes(path+".allow", name+".allow", allow)
	c.prefixes(path+".deny", name+".deny", deny)
	allowed := map[netip.Prefix]bool{}
	for _, p := range allow {
		allowed[p] = p.IsValid()
	}
	for i, p := range deny {
		if allowed[p] {
			c.add(c.plan.At(fmt.Sprintf("%s.deny[%d]", path, i)), "remove it from one", "%s: %s is allowed and denied", name, p)
		}
	}
}

func (c *checker) clientLimits() {
	l := c.plan.Limits
	c.prefixes("limits.exempt", "limits.exempt", l.Exempt)
	if octets, err := hex.DecodeString(l.Cookies.Secret); l.Cookies.Secret != "" && (err != nil || len(octets) != secretSize) {
		// The text of the secret is shown to nobody, not even when it is wrong.
		c.add(c.plan.At("limits.cookies.secret"), "make one with: openssl rand -hex 16", "limits.cookies.secret: expected %d hexadecimal digits", 2*secretSize)
	}
}
