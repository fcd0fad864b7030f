package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Errors of TSIG keys.
var (
	ErrTSIGAlgorithm = errors.New("unknown TSIG algorithm: use hmac-sha1, -sha224, -sha256, -sha384 or -sha512")
	ErrTSIGSecret    = errors.New("TSIG secret is empty")
)

// Errors of messages that were to be signed. ErrBadKey, ErrBadSig, ErrBadTime and
// ErrBadTrunc are the errors of RFC 8945 §3, found here or told by the peer.
var (
	ErrTSIGMissing  = errors.New("message without a TSIG record where one is due")
	ErrTSIGFormat   = errors.New("malformed TSIG record")
	ErrTSIGUnsigned = errors.New("more than 99 messages in a row without a TSIG record")
	ErrTSIGTail     = errors.New("the last message has no TSIG record")
	ErrBadSig       = errors.New("TSIG signature does not verify (BADSIG)")
	ErrBadKey       = errors.New("TSIG key is not the one agreed on (BADKEY)")
	ErrBadTime      = errors.New("TSIG time is outside the allowed difference (BADTIME)")
	ErrBadTrunc     = errors.New("TSIG signature is truncated too much (BADTRUNC)")
)

// Error codes of the TSIG record (RFC 8945 §3).
const (
	tsigBadSig   = 16
	tsigBadKey   = 17
	tsigBadTime  = 18
	tsigBadTrunc = 22
)

// TSIGFudge is the seconds by which clocks may differ that RFC 8945 §10
// recommends.
const TSIGFudge = 300

// maxMAC is the octets of the longest MAC.
const maxMAC = sha512.Size

// tsigAlgorithm is one algorithm of RFC 8945 §6.
type tsigAlgorithm struct {
	text string
	hash func() hash.Hash
}

// tsigAlgorithms are those that are taken. MD5 and GSS-TSIG are not: RFC 8945
// §6 has the first for compatibility only, the second needs a Kerberos realm.
var tsigAlgorithms = []tsigAlgorithm{
	{"hmac-sha256", sha256.New},
	{"hmac-sha1", sha1.New},
	{"hmac-sha224", sha256.New224},
	{"hmac-sha384", sha512.New384},
	{"hmac-sha512", sha512.New},
}

// TSIGKey is a secret shared with a peer, with its name and algorithm (RFC 8945).
// It never changes after it was made, and any number of exchanges use it at once.
type TSIGKey struct {
	// Least is the fewest octets of a MAC that are accepted; 0 is all of them.
	// Values below what RFC 8945 §5.2.2.1 allows count as what it allows.
	// Whoever makes the key sets it before its first use.
	Least int

	name      Name // letters folded
	algorithm Name
	secret    []byte
	hash      func() hash.Hash
	size      int // octets of a whole MAC
}

// NewTSIGKey makes a key. The algorithm is a name as RFC 8945 §6 has it, letters
// of any case, with or without a final dot. name and secret are copied. Errors
// are ErrTSIGAlgorithm and ErrTSIGSecret.
func NewTSIGKey(name Name, algorithm string, secret []byte) (*TSIGKey, error) {
	if len(secret) == 0 {
		return nil, fmt.Errorf("making TSIG key %s: %w", name, ErrTSIGSecret)
	}
	text := strings.ToLower(strings.TrimSuffix(algorithm, "."))
	for _, a := range tsigAlgorithms {
		if a.text == text {
			wireName, err := ParseName(a.text)
			if err != nil {
				return nil, fmt.Errorf("making TSIG key %s: %w", name, err)
			}
			return &TSIGKey{name: name.Fold(), algorithm: wireName, secret: bytes.Clone(secret), hash: a.hash, size: a.hash().Size()}, nil
		}
	}
	return nil, fmt.Errorf("making TSIG key %s: algorithm %q: %w", name, algorithm, ErrTSIGAlgorithm)
}

// Name is the key's name, letters folded. The caller does not change it.
func (k *TSIGKey) Name() Name { return k.name }

// floor is the fewest octets of a MAC that a message may have at all: RFC 8945
// §5.2.2.1.
func (k *TSIGKey) floor() int { return max(10, k.size/2) }

// least is the fewest octets that this key's owner accepts.
func (k *TSIGKey) least() int {
	if k.Least == 0 {
		return k.size
	}
	return min(max(k.Least, k.floor()), k.size)
}

// TSIG signs and verifies the messages of one exchange: a query and the one or
// many messages of its response. It belongs to one goroutine. The side that asks
// calls Sign once, then Verify for each message in order, then End; the side that
// answers calls Verify once, then Sign for each message.
type TSIG struct {
	key    *TSIGKey
	mac    hash.Hash
	prior  [maxMAC]byte // MAC of the last message with a TSIG record
	size   int          // octets of prior; 0 before the first message
	signed int          // messages with a TSIG record, both directions
	loose  int          // messages without one since the last with one
	open   bool         // the digest of the next message has begun
}

// NewTSIG starts an exchange with that key.
func NewTSIG(key *TSIGKey) *TSIG {
	return &TSIG{key: key, mac: hmac.New(key.hash, key.secret)}
}

// tsigRecord is what a TSIG record says. Its slices point into the message.
type tsigRecord struct {
	start     int // of the record in the message
	name      [MaxName]byte
	nameSize  int
	algorithm [MaxName]byte
	algoSize  int
	time      uint64 // seconds since 1970, 48 bits
	fudge     uint16
	mac       []byte
	id        uint16
	err       uint16
	other     []byte
}

// Sign appends a TSIG record to msg, a whole message without one, and returns the
// longer message, in the memory of msg where it has room. now is in seconds since
// 1970. Messages of a response that leave without a TSIG record are given to Digest
// (RFC 8945 §5.3.1).
func (t *TSIG) Sign(msg []byte, now int64) []byte {
	k := t.key
	rec := tsigRecord{time: uint64(now) & (1<<48 - 1), fudge: TSIGFudge, id: binary.BigEndian.Uint16(msg)}
	t.begin()
	_, _ = t.mac.Write(msg)
	t.variables(&rec)
	var sum [maxMAC]byte
	mac := t.mac.Sum(sum[:0])
	t.keep(mac)

	msg = append(msg, k.name...)
	msg = binary.BigEndian.AppendUint16(msg, TypeTSIG)
	msg = binary.BigEndian.AppendUint16(msg, ClassANY)
	msg = binary.BigEndian.AppendUint32(msg, 0)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(k.algorithm)+16+len(mac)))
	msg = append(msg, k.algorithm...)
	msg = appendTimers(msg, &rec)
	msg = binary.BigEndian.AppendUint16(msg, uint16(len(mac)))
	msg = append(msg, mac...)
	msg = binary.BigEndian.AppendUint16(msg, rec.id)
	msg = append(msg, 0, 0, 0, 0) // no error, no other data
	binary.BigEndian.PutUint16(msg[10:], binary.BigEndian.Uint16(msg[10:])+1)
	return msg
}

// Digest takes a message of a response that leaves without a TSIG record into the
// digest of the next that Sign makes.
func (t *TSIG) Digest(msg []byte) {
	t.begin()
	_, _ = t.mac.Write(msg)
}

// begin starts the digest of the next message with a TSIG record, unless messages
// without one are in it already: it opens with the MAC before (RFC 8945 §5.3).
func (t *TSIG) begin() {
	if t.open {
		return
	}
	t.open = true
	t.mac.Reset()
	if t.size > 0 {
		var size [2]byte
		binary.BigEndian.PutUint16(size[:], uint16(t.size))
		_, _ = t.mac.Write(size[:])
		_, _ = t.mac.Write(t.prior[:t.size])
	}
}

// variables ends the digest: all variables in a query and in the first message of
// a response (RFC 8945 §4.3.3), the timers alone in the messages behind it
// (§5.3.1).
func (t *TSIG) variables(rec *tsigRecord) {
	var room [2*MaxName + 32]byte
	v := room[:0]
	if t.signed > 1 {
		v = appendTimers(v, rec)
		_, _ = t.mac.Write(v)
		return
	}
	v = append(v, t.key.name...)
	v = binary.BigEndian.AppendUint16(v, ClassANY)
	v = binary.BigEndian.AppendUint32(v, 0)
	v = append(v, t.key.algorithm...)
	v = appendTimers(v, rec)
	v = binary.BigEndian.AppendUint16(v, rec.err)
	v = binary.BigEndian.AppendUint16(v, uint16(len(rec.other)))
	_, _ = t.mac.Write(v)
	_, _ = t.mac.Write(rec.other)
}

// appendTimers appends time signed and fudge.
func appendTimers(b []byte, rec *tsigRecord) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(rec.time>>32))
	b = binary.BigEndian.AppendUint32(b, uint32(rec.time))
	return binary.BigEndian.AppendUint16(b, rec.fudge)
}

// keep makes mac the one that the next digest opens with.
func (t *TSIG) keep(mac []byte) {
	t.size = copy(t.prior[:], mac)
	t.open = false
	t.signed++
	t.loose = 0
}
