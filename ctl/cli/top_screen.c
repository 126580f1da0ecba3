/* SPDX-License-Identifier: Apache-2.0 */
/* `cubefs top` on a terminal, by ncurses: rows, keys, the lines above and below. */
#include "ctl/cli/top_screen.h"

#include <ctype.h>
#include <curses.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/macros.h"

#define SCREEN_TICK_MS   200  /* so long for a key, then a look at what is new */
#define SCREEN_SILENT_MS 5000 /* then the mount does not answer */
#define SCREEN_ABOVE     2    /* lines above the rows */
#define SCREEN_AROUND    4    /* and all that are none */
#define SCREEN_CTRL(c)   ((c)&0x1f)

enum { PAIR_DEFAULT, PAIR_QUIET, PAIR_WARM, PAIR_BAD };

enum screen_mode { MODE_TABLE, MODE_FILTER, MODE_END, MODE_HELP };

struct screen {
	struct top_reader *reader;
	const char *mount;
	struct top_table table; /* all, in order */
	size_t *shown;          /* rows that match, indices */
	size_t n_shown, first, at;
	char chosen[CUBE_NAME_MAX + 1]; /* stays chosen when rows move */
	enum top_sort sort;
	bool reverse, done, read;
	enum screen_mode mode;
	char filter[64];
	char message[CUBE_ERR_TEXT + 128];
	char asked[CUBE_NAME_MAX + 1]; /* whose end is asked for */
	struct cube_err err;
	uint64_t silent_ms;
};

/* ---- Rows ---- */

static int screen_rows(void)
{
	return LINES > SCREEN_AROUND ? LINES - SCREEN_AROUND : 1;
}

static const struct top_row *screen_row(const struct screen *s)
{
	return s->n_shown > 0 ? &s->table.rows[s->shown[s->at]] : NULL;
}

static void screen_choose(struct screen *s, size_t at)
{
	size_t rows = (size_t)screen_rows();

	s->at = s->n_shown == 0 ? 0 : at >= s->n_shown ? s->n_shown - 1 : at;
	if (s->at < s->first)
		s->first = s->at;
	if (s->at >= s->first + rows)
		s->first = s->at - rows + 1;
	if (s->first + rows > s->n_shown)
		s->first = s->n_shown > rows ? s->n_shown - rows : 0;
	if (s->n_shown > 0)
		(void)snprintf(s->chosen, sizeof(s->chosen), "%s", screen_row(s)->name);
}

/* After another order, filter or table: the same sandbox stays chosen, if it is there. */
static void screen_arrange(struct screen *s)
{
	size_t at = s->at;

	top_order(&s->table, s->sort, s->reverse);
	s->n_shown = 0;
	for (size_t i = 0; s->shown != NULL && i < s->table.n; i++) {
		if (!top_matches(&s->table.rows[i], s->filter))
			continue;
		if (strcmp(s->table.rows[i].name, s->chosen) == 0)
			at = s->n_shown;
		s->shown[s->n_shown++] = i;
	}
	screen_choose(s, at);
}

static void screen_take(struct screen *s)
{
	struct top_table fresh;

	if (!top_reader_take(s->reader, &fresh, &s->err, &s->silent_ms))
		return;
	top_free(&s->table);
	s->table = fresh;
	(free)(s->shown);
	s->shown = (calloc)(fresh.n + 1, sizeof(*s->shown));
	s->read = true;
	screen_arrange(s);
}

/* ---- Drawing ---- */

static void screen_put(int line, const char *text, attr_t attr)
{
	(void)attrset(attr);
	(void)mvaddnstr(line, 0, text, COLS);
	(void)clrtoeol();
	if (attr & A_REVERSE)
		(void)mvchgat(line, 0, -1, A_REVERSE, PAIR_NUMBER(attr), NULL);
	(void)attrset(A_NORMAL);
}

static attr_t screen_colour(const struct top_row *row)
{
	static const struct {
		const char *state;
		short pair;
		attr_t attr;
	} colours[] = {
		{"paused", PAIR_WARM, A_NORMAL},
		{"creating", PAIR_WARM, A_NORMAL},
		{"stopped", PAIR_QUIET, A_DIM},
		{"error", PAIR_BAD, A_NORMAL},
	};

	for (size_t i = 0; i < CUBE_COUNT(colours); i++)
		if (strcmp(row->state, colours[i].state) == 0)
			return (attr_t)COLOR_PAIR(colours[i].pair) | colours[i].attr;
	return A_NORMAL;
}

static void screen_draw_above(const struct screen *s)
{
	char line[TOP_LINE], filter[sizeof(s->filter) + 16] = "";
	unsigned running = 0, paused = 0;
	attr_t attr = A_NORMAL;

	for (size_t i = 0; i < s->table.n; i++) {
		running += strcmp(s->table.rows[i].state, "running") == 0;
		paused += strcmp(s->table.rows[i].state, "paused") == 0;
	}
	if (s->filter[0] != '\0')
		(void)snprintf(filter, sizeof(filter), ", %zu with '%s'", s->n_shown, s->filter);
	(void)snprintf(line, sizeof(line), "cubefs %.200s: %zu sandboxes, %u running, %u paused%s", s->mount,
		       s->table.n, running, paused, filter);
	if (s->silent_ms > SCREEN_SILENT_MS) {
		(void)snprintf(line, sizeof(line), "cubefs %.200s: no answer for %u s", s->mount,
			       (unsigned)(s->silent_ms / 1000));
		attr = (attr_t)COLOR_PAIR(PAIR_BAD);
	} else if (s->err.code != 0) {
		(void)snprintf(line, sizeof(line), "%s", s->err.text);
		attr = (attr_t)COLOR_PAIR(PAIR_BAD);
	} else if (!s->read) {
		(void)snprintf(line, sizeof(line), "cubefs %.200s: reading", s->mount);
	}
	screen_put(0, line, attr);
	top_head(line, (size_t)COLS, s->sort);
	screen_put(1, line, A_REVERSE);
}

static void screen_draw_rows(const struct screen *s)
{
	for (int i = 0; i < screen_rows(); i++) {
		size_t at = s->first + (size_t)i;
		char line[TOP_LINE] = "";
		attr_t attr = A_NORMAL;

		if (at < s->n_shown) {
			const struct top_row *row = &s->table.rows[s->shown[at]];

			top_line(row, line, (size_t)COLS);
			attr = at == s->at ? A_REVERSE : screen_colour(row);
		}
		screen_put(SCREEN_ABOVE + i, line, attr);
	}
}

static void screen_draw_below(const struct screen *s)
{
	char line[sizeof(s->message) + TOP_LINE] = "";

	if (s->mode == MODE_FILTER)
		(void)snprintf(line, sizeof(line), "show: %s_   (Enter: done, Esc: all)", s->filter);
	else if (s->mode == MODE_END)
		(void)snprintf(line, sizeof(line), "end '%s', with all that is in it? y/n", s->asked);
	else
		(void)snprintf(line, sizeof(line), "%s", s->message);
	screen_put(LINES - 2, line, s->mode == MODE_END ? (attr_t)COLOR_PAIR(PAIR_BAD) : A_NORMAL);
	screen_put(LINES - 1, "q quit  h help  / filter  < > sort  R reverse  p pause  r resume  e end",
		   A_DIM);
}

static void screen_draw_help(void)
{
	static const char *const lines[] = {
		"cubefs top: the sandboxes of a mount",
		"",
		"  up down j k PgUp PgDn Home End   choose a sandbox",
		"  < > s                            order by another column",
		"  N S B C M D O P I                order by name, state, backend, cpu, memory, disk,",
		"                                   commands, pids, idle time; again: the other way",
		"  R                                the other way round",
		"  /                                show those with a text in name, state, backend or labels",
		"  p  r                             pause, resume the chosen one",
		"  e                                end it, after a question",
		"  Space                            read again now",
		"  q                                quit",
		"",
		"%CPU is of one processor, since the reading before; - is what nobody knows.",
		"Any key goes back.",
	};

	(void)erase();
	for (int i = 0; i < (int)CUBE_COUNT(lines) && i < LINES; i++)
		screen_put(i, lines[i], i == 0 ? A_BOLD : A_NORMAL);
}

static void screen_draw(const struct screen *s)
{
	if (s->mode == MODE_HELP) {
		screen_draw_help();
	} else {
		screen_draw_above(s);
		screen_draw_rows(s);
		screen_draw_below(s);
	}
	(void)refresh();
}

/* ---- Keys ---- */

static void screen_sort(struct screen *s, unsigned by)
{
	if ((enum top_sort)by == s->sort)
		s->reverse = !s->reverse;
	else
		s->reverse = false;
	s->sort = (enum top_sort)by;
	screen_arrange(s);
}

static void screen_act(struct screen *s, const char *name, const char *verb)
{
	(void)snprintf(s->message, sizeof(s->message), "%s %s ...", verb != NULL ? verb : "end", name);
	top_reader_act(s->reader, name, verb);
}

static void screen_act_row(struct screen *s, const char *verb)
{
	if (s->n_shown > 0)
		screen_act(s, screen_row(s)->name, verb);
}

static void screen_key_filter(struct screen *s, int key)
{
	size_t len = strlen(s->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		s->mode = MODE_TABLE;
	} else if (key == 27) {
		s->filter[0] = '\0';
		s->mode = MODE_TABLE;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (len > 0)
			s->filter[len - 1] = '\0';
	} else if (key > ' ' && key < 127 && len + 1 < sizeof(s->filter)) {
		s->filter[len] = (char)key;
		s->filter[len + 1] = '\0';
	}
	screen_arrange(s);
}

/* What was asked about, not what has moved to its place meanwhile. */
static void screen_key_end(struct screen *s, int key)
{
	s->mode = MODE_TABLE;
	s->message[0] = '\0';
	if (key == 'y' || key == 'Y')
		screen_act(s, s->asked, NULL);
}

static bool screen_key_move(struct screen *s, int key)
{
	size_t page = (size_t)screen_rows();

	switch (key) {
	case KEY_UP:
	case 'k':
		screen_choose(s, s->at > 0 ? s->at - 1 : 0);
		return true;
	case KEY_DOWN:
	case 'j':
		screen_choose(s, s->at + 1);
		return true;
	case KEY_PPAGE:
		screen_choose(s, s->at > page ? s->at - page : 0);
		return true;
	case KEY_NPAGE:
		screen_choose(s, s->at + page);
		return true;
	case KEY_HOME:
		screen_choose(s, 0);
		return true;
	case KEY_END:
		screen_choose(s, s->n_shown);
		return true;
	default:
		return false;
	}
}

static bool screen_key_order(struct screen *s, int key)
{
	if (key == '>' || key == 's')
		screen_sort(s, (s->sort + 1) % TOP_SORTS);
	else if (key == '<')
		screen_sort(s, (s->sort + TOP_SORTS - 1) % TOP_SORTS);
	else if (key == 'R')
		screen_sort(s, s->sort);
	else {
		for (unsigned i = 0; i < TOP_SORTS; i++) {
			if (key != top_sort_key(i))
				continue;
			screen_sort(s, i);
			return true;
		}
		return false;
	}
	return true;
}

static void screen_key_table(struct screen *s, int key)
{
	if (screen_key_move(s, key) || screen_key_order(s, key))
		return;
	switch (key) {
	case 'q':
	case SCREEN_CTRL('c'):
		s->done = true;
		return;
	case 'h':
	case '?':
		s->mode = MODE_HELP;
		return;
	case '/':
		s->mode = MODE_FILTER;
		return;
	case 27:
		s->filter[0] = '\0';
		screen_arrange(s);
		return;
	case 'p':
		screen_act_row(s, "pause");
		return;
	case 'r':
		screen_act_row(s, "resume");
		return;
	case 'e':
		if (s->n_shown == 0)
			return;
		s->mode = MODE_END;
		(void)snprintf(s->asked, sizeof(s->asked), "%s", s->chosen);
		return;
	case ' ':
		top_reader_again(s->reader);
		return;
	default:
		return;
	}
}

static void screen_key(struct screen *s, int key)
{
	if (key == KEY_RESIZE) {
		screen_choose(s, s->at);
		(void)erase();
		return;
	}
	switch (s->mode) {
	case MODE_FILTER:
		screen_key_filter(s, key);
		return;
	case MODE_END:
		screen_key_end(s, key);
		return;
	case MODE_HELP:
		s->mode = MODE_TABLE;
		(void)erase();
		return;
	case MODE_TABLE:
		screen_key_table(s, key);
		return;
	}
}

/* ---- The screen ---- */

static void screen_open(void)
{
	(void)raw(); /* Ctrl-C is a key: the screen is given back in order */
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)curs_set(0);
	(void)set_escdelay(50);
	timeout(SCREEN_TICK_MS);
	if (!has_colors())
		return;
	(void)start_color();
	(void)use_default_colors();
	(void)init_pair(PAIR_QUIET, -1, -1);
	(void)init_pair(PAIR_WARM, COLOR_YELLOW, -1);
	(void)init_pair(PAIR_BAD, COLOR_RED, -1);
}

int top_screen(struct top_reader *reader, const char *mount, struct cube_err *err)
{
	struct screen s = {.reader = reader, .mount = mount, .sort = TOP_BY_NAME};
	SCREEN *terminal = newterm(NULL, stdout, stdin);

	if (terminal == NULL)
		return cube_fail(err, -EINVAL,
				 "top: the terminal '%s' is not known; `cubefs top -b` prints the table once",
				 getenv("TERM") != NULL ? getenv("TERM") : "");
	screen_open();
	while (!s.done) {
		char news[sizeof(s.message)];
		int key;

		screen_take(&s);
		top_reader_news(reader, news, sizeof(news));
		if (news[0] != '\0')
			(void)snprintf(s.message, sizeof(s.message), "%s", news);
		screen_draw(&s);
		key = getch();
		if (key != ERR)
			screen_key(&s, key);
	}
	(void)endwin();
	delscreen(terminal);
	top_free(&s.table);
	(free)(s.shown);
	return 0;
}
