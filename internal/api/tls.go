package api

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// CertFiles is a certificate and its key, in PEM. Empty is none.
type CertFiles struct{ Cert, Key string }

// certLook is how often the files are looked at.
const certLook = time.Minute

// over puts TLS over a listener. Files that have changed are read anew; where they
// cannot be read, the certificate stays.
func (c CertFiles) over(l net.Listener, wall func() time.Time) (net.Listener, error) {
	held := &heldCert{files: c, wall: wall}
	if err := held.load(); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return held.current(), nil },
	}), nil
}

// heldCert is a certificate and when its files were last looked at.
type heldCert struct {
	files CertFiles
	wall  func() time.Time

	mu      sync.Mutex // guards what follows
	cert    *tls.Certificate
	changed [2]time.Time
	looked  time.Time
}

func (h *heldCert) load() error {
	cert, err := tls.LoadX509KeyPair(h.files.Cert, h.files.Key)
	if err != nil {
		return err
	}
	h.cert, h.changed, h.looked = &cert, h.stamps(), h.wall()
	return nil
}

// stamps is when the files were last changed.
func (h *heldCert) stamps() (t [2]time.Time) {
	for i, path := range []string{h.files.Cert, h.files.Key} {
		if info, err := os.Stat(path); err == nil {
			t[i] = info.ModTime()
		}
	}
	return t
}

func (h *heldCert) current() *tls.Certificate {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.wall(); now.Sub(h.looked) >= certLook {
		h.looked = now
		if h.stamps() != h.changed {
			_ = h.load() // a renewal may be half done: the next look comes
		}
	}
	return h.cert
}
