package qlog

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Privacy is what the log tells of clients.
type Privacy uint8

// What can be told.
const (
	Addresses  Privacy = iota // all of it
	Masked                    // the /24 of IPv4 and the /48 of IPv6 that the client is in
	Pseudonyms                // a name for each client that only who has the key can find
)

// The prefixes of Masked.
const (
	maskedV4 = 24
	maskedV6 = 48
)

// privacy is Privacy at work.
type privacy struct {
	level Privacy
	key   []byte // of pseudonyms
}

// mask is what is kept of an address.
func (p *privacy) mask(client [16]byte) [16]byte {
	if p.level != Masked {
		return client
	}
	keep := maskedV6 / 8
	if netip.AddrFrom16(client).Is4In6() {
		keep = 12 + maskedV4/8
	}
	clear(client[keep:])
	return client
}

// appendClient writes what the log calls a client, after mask.
func (p *privacy) appendClient(dst []byte, client [16]byte) []byte {
	if p.level != Pseudonyms {
		return netip.AddrFrom16(client).Unmap().AppendTo(dst)
	}
	h := hmac.New(sha256.New, p.key)
	h.Write(client[:])
	return hex.AppendEncode(append(dst, 'c', '-'), h.Sum(nil)[:8])
}

// subnet is what is told of the data of an ECS option; empty is nothing, and what is
// malformed (RFC 7871 §6).
func (p *privacy) subnet(data []byte) string {
	if len(data) < 4 || p.level == Pseudonyms {
		return ""
	}
	var b [16]byte
	size, most := 16, maskedV6
	if binary.BigEndian.Uint16(data) == 1 {
		size, most = 4, maskedV4
	}
	bits := int(data[2])
	if len(data)-4 > size || bits > 8*size {
		return ""
	}
	copy(b[:size], data[4:])
	if p.level == Masked {
		bits = min(bits, most)
	}
	addr, _ := netip.AddrFromSlice(b[:size])
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return ""
	}
	return prefix.String()
}

// keyFile holds the key of pseudonyms: while it is the same, a client has the same
// name.
const keyFile = "pseudonyms.key"

const keyVersion = "waymark-pseudonyms 1"

// openKey reads the key of a folder, or makes one.
func openKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		text = []byte(keyVersion + "\n" + hex.EncodeToString(key) + "\n")
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of pseudonyms: %w", err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	if !lines.Scan() || lines.Text() != keyVersion || !lines.Scan() {
		return nil, fmt.Errorf("reading the key of pseudonyms: %s: not a key of this version; remove it, and clients get new names", path)
	}
	key, err := hex.DecodeString(lines.Text())
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("reading the key of pseudonyms: %s: it is not 32 octets in hexadecimal; remove it, and clients get new names", path)
	}
	return key, nil
}
