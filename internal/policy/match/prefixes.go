package match

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
)

// PrefixList is prefixes on their way into a set.
type PrefixList []netip.Prefix

// Add adds a prefix or a lone address. Host bits are masked, and IPv4 that is
// mapped into IPv6 counts as IPv4.
func (l *PrefixList) Add(text string) error {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("reading prefix: %w", err)
		}
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		*l = append(*l, p.Masked())
		return nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Errorf("reading address: %w", err)
	}
	a = a.Unmap().WithZone("")
	*l = append(*l, netip.PrefixFrom(a, a.BitLen()))
	return nil
}

// ReadFile adds what a file holds, one prefix a line.
func (l *PrefixList) ReadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading addresses: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if err := l.Read(f); err != nil {
		return fmt.Errorf("%s:%w", path, err)
	}
	return nil
}

// Read adds one prefix a line; what stands behind # or behind the first blank is
// not looked at. An error begins with the number of its line.
func (l *PrefixList) Read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.TrimSpace(text)
		if i := strings.IndexAny(text, " \t"); i >= 0 {
			text = text[:i]
		}
		if text == "" {
			continue
		}
		if err := l.Add(text); err != nil {
			return fmt.Errorf("%d: %w", n, err)
		}
	}
	return lines.Err()
}
