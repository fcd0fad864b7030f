package mosdns

import (
	"net"
	"strings"

	"github.com/waymark-dns/waymark/internal/config/tree"
	"github.com/waymark-dns/waymark/internal/plan"
)

// levels are the names of the levels of the log, and what each is here.
var levels = map[string]string{
	"": "info", "debug": "debug", "info": "info", "warn": "warn", "warning": "warn",
	"error": "error", "dpanic": "error", "panic": "error", "fatal": "error",
}

type logArgs struct {
	Level      string `key:"level"`
	File       string `key:"file"`
	Production bool   `key:"production"`
}

// log reads the program's own log.
func (f *file) log(at tree.Pair, p *plan.Plan) {
	if at.Value == nil {
		return
	}
	var args logArgs
	p.Where["log"] = at.Pos
	d := &decoder{src: f.src, where: p.Where, prefix: "log"}
	d.into(at.Value, &args, "log")
	level, ok := levels[strings.ToLower(args.Level)]
	if !ok {
		mend := "write debug, info, warn, error, dpanic, panic or fatal"
		f.src.Problem(p.At("log.level"), mend, "log.level: unknown level %s", tree.Quote(args.Level))
		level = "info"
	}
	p.Log = plan.Log{Level: level, File: args.File, JSON: args.Production}
	switch args.File {
	case "stderr":
		p.Log.File = ""
	case "stdout":
		p.Log.File = "/dev/stdout"
	}
}

type apiArgs struct {
	HTTP  string `key:"http"`
	Token string `key:"token"` // ours
}

// api reads where the HTTP API listens.
func (f *file) api(at tree.Pair, p *plan.Plan) {
	if at.Value == nil {
		return
	}
	var args apiArgs
	p.Where["api"] = at.Pos
	d := &decoder{src: f.src, where: p.Where, prefix: "api"}
	d.into(at.Value, &args, "api")
	if args.HTTP == "" {
		return
	}
	p.API = plan.API{Pos: p.At("api.http"), HTTP: args.HTTP, Token: args.Token}
	if _, _, err := net.SplitHostPort(args.HTTP); err != nil {
		f.src.Problem(p.API.Pos, "write for example 127.0.0.1:9080", "api.http: %s is no address with a port", tree.Quote(args.HTTP))
	}
}
