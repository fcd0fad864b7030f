package api

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate writes a certificate with that number, and its key.
func certificate(t *testing.T, files CertFiles, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "waymark"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	priv, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, files.Cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, files.Key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: priv})))
}

// With a certificate only TLS is spoken; a renewed one is taken up, a broken one is not.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	files := CertFiles{filepath.Join(dir, "cert"), filepath.Join(dir, "key")}
	certificate(t, files, 1)
	later := time.Duration(0)
	r := newRig(t, func(c *Config, _ *world) {
		c.TLS = files
		c.Wall = func() time.Time { return time.Now().Add(later) }
	})
	shown := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", r.Addr(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := shown(); n != 1 {
		t.Errorf("certificate %d", n)
	}
	if resp, err := http.Get(r.url + prefix + "health"); err == nil {
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	certificate(t, files, 2)
	stamp := time.Now().Add(time.Hour)
	if err := os.Chtimes(files.Cert, stamp, stamp); err != nil {
		t.Fatal(err)
	}
	if n := shown(); n != 1 {
		t.Errorf("certificate %d: the files are looked at too often", n)
	}
	later = 2 * certLook
	if n := shown(); n != 2 {
		t.Errorf("certificate %d behind a renewal", n)
	}
	write(t, files.Cert, "half a certificate")
	later += 2 * certLook
	if n := shown(); n != 2 {
		t.Errorf("certificate %d with a broken file", n)
	}
	if _, err := Open(Config{Listen: "127.0.0.1:0", Access: Access{Open: true}, TLS: files, Clock: r.conf.Clock, Log: r.conf.Log}); err == nil {
		t.Error("a server starts with a broken certificate")
	}
}

// A body that stands still ends the request.
func TestSlow(t *testing.T) {
	r := newRig(t, func(c *Config, _ *world) {
		c.Deadline = func(time.Duration) time.Time { return time.Now() } // all time is over
	})
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "PUT %szones/slow.example/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/dns\r\nContent-Length: 1000\r\n\r\n@ IN", prefix, tokens[Admin])
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err == nil && len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.1 4")) {
		t.Errorf("%q", answer)
	}
	if len(r.world.served) != 0 {
		t.Error("half a zone is served")
	}
	if h := r.http; h.ReadHeaderTimeout == 0 || h.ReadTimeout == 0 || h.WriteTimeout == 0 || h.IdleTimeout == 0 {
		t.Error("a client may take as long as it likes")
	}
}
