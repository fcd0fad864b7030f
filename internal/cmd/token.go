package cmd

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// TokenCmd makes a token for the HTTP API.
type TokenCmd struct {
	Name  string `arg:"" help:"What the audit trail calls who shows it."`
	Scope string `default:"read" enum:"read,operate,admin" help:"What it is good for: read, operate or admin."`
}

// Run prints the token, which nobody else has, and what the configuration says of it.
func (c *TokenCmd) Run(stdout io.Writer) error {
	token := rand.Text()
	sum := sha256.Sum256([]byte(token))
	_, err := fmt.Fprintf(stdout, "token, for the client alone:\n%s\n\nunder api: tokens: in the configuration:\n- {name: %s, scope: %s, sha256: %s}\n",
		token, c.Name, c.Scope, hex.EncodeToString(sum[:]))
	return err
}

// PasswordCmd makes the hash of a password for the HTTP API.
type PasswordCmd struct{}

// passwordCost is how much work a guess is: a quarter of a second.
const passwordCost = 12

// maxPassword is the octets that bcrypt looks at.
const maxPassword = 72

// Run reads the password from the standard input, so that no list of processes and no
// history of a shell has it, and prints what the configuration says of it.
func (c *PasswordCmd) Run(stdout io.Writer) error { return printPassword(os.Stdin, stdout) }

func printPassword(in io.Reader, stdout io.Writer) error {
	line, err := bufio.NewReader(in).ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	switch {
	case line == "" && err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("reading the password: %w", err)
	case len(line) < 8:
		return errors.New("reading the password: write one of at least 8 characters on the standard input")
	case len(line) > maxPassword:
		return fmt.Errorf("reading the password: it has more than %d octets", maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(line), passwordCost)
	if err != nil {
		return fmt.Errorf("hashing the password: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "under api: in the configuration:\npassword: %s\n", hash)
	return err
}
