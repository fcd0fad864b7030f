package sections

import "github.com/waymark-dns/waymark/internal/plan"

var logRow = row[plan.Plan]{
	key:     "log",
	value:   under(logRows, func(p *plan.Plan) *plan.Log { return &p.Log }),
	example: "{level: info}",
	doc:     "The program's own log. It is not a log of queries.",
}

var logRows = []row[plan.Log]{
	{
		key: "level", value: text(func(l *plan.Log) *string { return &l.Level }), preset: "info", example: "info",
		doc: "What is worth a line: `debug`, `info`, `warn` or `error`, and everything more severe.",
	},
	{
		key: "production", value: boolean(func(l *plan.Log) *bool { return &l.JSON }), preset: "false", example: "true",
		doc: "Write lines of JSON, for machines to read.",
	},
	{
		key: "file", value: path(func(l *plan.Log) *string { return &l.File }), example: "waymark.log",
		doc: "File to append to; without it, standard error.",
	},
}
