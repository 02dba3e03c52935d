// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// The backend of the garage door app. ../README.md lists its paths, its settings and what is left out.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/kafka"
	_ "github.com/mattn/go-sqlite3"
)

const (
	app = "com.example.garage"
	// The registrar takes 256 KiB: one batch is at most what was gathered, and one body on top of it.
	bodyBytesMax     = 128 << 10
	gatheredBytesMax = 64 << 10

	schema = `
CREATE TABLE IF NOT EXISTS doors (id TEXT PRIMARY KEY, name TEXT NOT NULL, isOpen INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, user TEXT NOT NULL, title TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS installations (id TEXT PRIMARY KEY, user TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL,
                                   event TEXT NOT NULL);
INSERT OR IGNORE INTO doors VALUES ('door-42', 'Left', 0), ('door-43', 'Right', 0);`
)

var (
	database   *sql.DB
	signingKey *ecdsa.PrivateKey
	sessions   = map[string]string{} // However your users sign in; here the sessions are given.
	changed    = make(chan struct{}, 1)
	forwarders = map[string]*forwarder{}
)

type door struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	IsOpen bool   `json:"isOpen"`
}

// refusal is an answer other than 200.
type refusal struct {
	status int
	detail string
}

func (r refusal) Error() string { return r.detail }

// state-and-event: both or neither
func setDoor(id string, isOpen bool) (door, error) {
	found := door{ID: id, IsOpen: isOpen}
	transaction, err := database.Begin() // BEGIN IMMEDIATE, as the database was opened.
	if err != nil {
		return found, err
	}
	defer transaction.Rollback() // Does nothing after the commit.
	err = transaction.QueryRow("UPDATE doors SET isOpen = ? WHERE id = ? RETURNING name", isOpen, id).Scan(&found.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return found, refusal{404, "there is no such door"}
	}
	if err == nil {
		err = addEvent(transaction, id)
	}
	title := found.Name + map[bool]string{true: " door opened", false: " door closed"}[isOpen]
	for _, user := range sessions {
		if err == nil {
			_, err = transaction.Exec("INSERT INTO messages (user, title) VALUES (?, ?)", user, title)
		}
		if err == nil {
			err = addEvent(transaction, "user/"+user+"/messages")
		}
	}
	if err == nil {
		err = transaction.Commit()
	}
	select {
	case changed <- struct{}{}:
	default: // The relay has been told already.
	}
	return found, err
}

func addEvent(transaction *sql.Tx, subject string) error {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	event, err := json.Marshal(map[string]any{
		"v": 1, "id": hex.EncodeToString(id), "time": time.Now().UTC().Format(time.RFC3339), "app": app})
	if err == nil {
		_, err = transaction.Exec("INSERT INTO outbox (subject, event) VALUES (?, ?)", subject, string(event))
	}
	return err
}

// end

type event struct {
	id             int64
	subject, value string
}

// relay: at least once, in order
// Of several backends with one database only one may run it. When it ends, the program does: the next
// start begins with the oldest unsent event.
func relay() error {
	// With idempotence a retry inside the producer neither duplicates nor reorders.
	producer, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": os.Getenv("KAFKA"), "acks": "all", "enable.idempotence": true,
		"partitioner": "murmur2_random"}) // Kafka's own; librdkafka's default is another.
	if err != nil {
		return err
	}
	go func() {
		for range producer.Events() { // Errors of connections, which the producer mends.
		}
	}()
	for {
		events, err := unsent()
		if err != nil {
			return err
		}
		sent := 0
		if len(events) > 0 {
			if sent, err = publish(producer, events); err != nil {
				return err
			}
			if sent > 0 {
				// One that was not acknowledged is sent again, and so are those after it: a duplicate
				// is harmless, since an event says no more than that something changed.
				if _, err := database.Exec("DELETE FROM outbox WHERE id <= ?", events[sent-1].id); err != nil {
					return err
				}
			}
		}
		if sent == 0 || sent < len(events) {
			select {
			case <-changed:
			case <-time.After(time.Second):
			}
		}
	}
}

// publish returns how many were acknowledged before the first that was not.
func publish(producer *kafka.Producer, events []event) (int, error) {
	topic := setting("EVENTS_TOPIC", "lamplighter.events")
	reports := make(chan kafka.Event, len(events))
	for number, event := range events {
		err := producer.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: kafka.PartitionAny},
			Key:            []byte(event.subject), Value: []byte(event.value), Opaque: number}, reports)
		if err != nil {
			return 0, err
		}
	}
	acknowledged := len(events)
	for range events {
		message := (<-reports).(*kafka.Message)
		number := message.Opaque.(int)
		if message.TopicPartition.Error != nil && number < acknowledged {
			acknowledged = number
		}
	}
	return acknowledged, nil
}

func unsent() (events []event, err error) {
	found, err := database.Query("SELECT id, subject, event FROM outbox ORDER BY id LIMIT 500")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var next event
		if err := found.Scan(&next.id, &next.subject, &next.value); err != nil {
			return nil, err
		}
		events = append(events, next)
	}
	return events, found.Err()
}

// end

// subjectPrefixes are what the user may hear of: all doors, and the messages to this user. A prefix ends
// with a character that ends a name: "user/ada" would also be one of "user/adam/messages".
func subjectPrefixes(user string) []string { return []string{"door-", "user/" + user + "/"} }

// credential: for an app that talks to the registrar itself
func pushCredential(user, installation string) (any, error) {
	if err := own(user, installation); err != nil {
		return nil, err
	}
	// The user's other installations too: after signing out and in, the app removes the one before.
	var installations []string
	found, err := database.Query("SELECT id FROM installations WHERE user = ? ORDER BY rowid DESC LIMIT 20", user)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var id string
		if err := found.Scan(&id); err != nil {
			return nil, err
		}
		installations = append(installations, id)
	}
	now := time.Now().Unix()
	token, err := signed(map[string]any{
		"iss": os.Getenv("ISSUER"), "aud": "lamplighter", "sub": user, "iat": now, "exp": now + 600,
		"app": app, "installation": installations, "subjectPrefixes": subjectPrefixes(user)})
	return map[string]string{"token": token}, err
}

// own: installations are random and secret; the first user who names one has it.
func own(user, installation string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`).MatchString(installation) {
		return refusal{400, "name the installation: ?installation=…"}
	}
	_, err := database.Exec("INSERT OR IGNORE INTO installations VALUES (?, ?)", installation, user)
	if err != nil {
		return err
	}
	var owner string
	err = database.QueryRow("SELECT user FROM installations WHERE id = ?", installation).Scan(&owner)
	if err == nil && owner != user {
		return refusal{403, "the installation is another user's"}
	}
	return err
}

// end

// signed makes a JSON Web Token with ES256 (RFC 7518, 3.4).
func signed(claims map[string]any) (string, error) {
	header, _ := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": jwk()["kid"]})
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(body)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, signingKey, digest[:])
	if err != nil {
		return "", err
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func jwk() map[string]string {
	x := base64.RawURLEncoding.EncodeToString(signingKey.X.FillBytes(make([]byte, 32)))
	y := base64.RawURLEncoding.EncodeToString(signingKey.Y.FillBytes(make([]byte, 32)))
	id := sha256.Sum256([]byte(x + y))
	return map[string]string{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig",
		"x": x, "y": y, "kid": hex.EncodeToString(id[:8])}
}

// A forwarder passes on the registrations of one environment, in one batch what came in during the last
// one. The app keeps each until it is answered, so nothing needs to be stored here.
type forwarder struct {
	url, key string
	waiting  chan waiting
}

type waiting struct {
	item   json.RawMessage
	answer chan result
}

type result struct {
	Status  int            `json:"status"`
	Body    map[string]any `json:"body"`
	Problem map[string]any `json:"problem"`
}

func (f *forwarder) run() {
	for first := range f.waiting {
		batch, size := []waiting{first}, len(first.item)
	gathering:
		for size < gatheredBytesMax && len(batch) < 500 {
			select {
			case next := <-f.waiting:
				batch, size = append(batch, next), size+len(next.item)
			default:
				break gathering
			}
		}
		results, err := f.post(batch)
		if err != nil {
			log.Print("forwarder: ", err)
		}
		for number, one := range batch {
			if err != nil {
				// Whatever it is, a refused key too, the app cannot mend it: 503 makes it try again later.
				one.answer <- result{Status: 503, Problem: map[string]any{"detail": "the registrar did not answer"}}
			} else {
				one.answer <- results[number]
			}
		}
	}
}

func (f *forwarder) post(batch []waiting) ([]result, error) {
	items := make([]json.RawMessage, len(batch))
	for number, one := range batch {
		items[number] = one.item
	}
	body, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest("POST", f.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+f.key)
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Results []result }
	if response.StatusCode != 200 {
		return nil, fmt.Errorf("the registrar answered %s", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	if err == nil && len(answer.Results) != len(batch) {
		err = errors.New("the registrar did not answer each item")
	}
	return answer.Results, err
}

// forwarding: for an app that talks to this backend alone
type item struct {
	Method       string              `json:"method"`
	Installation string              `json:"installation"`
	Class        string              `json:"class,omitempty"`
	Handler      string              `json:"handler,omitempty"`
	Sequence     *int64              `json:"sequence,omitempty"`
	Targets      *[]target           `json:"targets,omitempty"`
	Handlers     map[string][]target `json:"handlers,omitempty"`
}

type target struct {
	Token    string  `json:"token,omitempty"`
	OnChange string  `json:"onChange,omitempty"`
	Shows    []shown `json:"shows,omitempty"`
}

type shown struct {
	Kind     string   `json:"kind"`
	Subjects []string `json:"subjects"`
}

// registration is an item of a batch. A service key is not limited to subjects, so this backend must look
// at them, and sends on what it has looked at, not the bytes that it was sent.
func registration(user, method string, path []string, body []byte) (json.RawMessage, error) {
	var item item
	if err := own(user, path[2]); err != nil {
		return nil, err
	}
	if method == "PUT" && json.Unmarshal(body, &item) != nil {
		return nil, refusal{400, "the body is not what the README says"}
	}
	item.Method, item.Installation, item.Class, item.Handler = method, path[2], path[3], path[4]
	var all []target
	if item.Targets != nil {
		all = append(all, *item.Targets...)
	}
	for _, more := range item.Handlers {
		all = append(all, more...)
	}
	for _, target := range all {
		for _, shown := range target.Shows {
			// A target without subjects would hear of all of its kind.
			allowed := len(shown.Subjects) > 0
			for _, subject := range shown.Subjects {
				allowed = allowed && isOf(user, subject)
			}
			if !allowed {
				return nil, refusal{403, "a subject is not this user's"}
			}
		}
	}
	return json.Marshal(item)
}

func isOf(user, subject string) bool {
	for _, prefix := range subjectPrefixes(user) {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}

// end

var registrationPath = regexp.MustCompile(`^/v1/apps/` + regexp.QuoteMeta(app) +
	`/environments/(production|development)/installations/([^/]+)(?:/([^/]+)(?:/([^/]+))?)?$`)

func serve(response http.ResponseWriter, request *http.Request) {
	status, content := 200, any(nil)
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, bodyBytesMax))
	if err != nil {
		err = refusal{413, "the body is too long"}
	} else {
		status, content, err = answer(request, body)
	}
	var refused refusal
	if errors.As(err, &refused) {
		status, content = refused.status, map[string]string{"detail": refused.detail}
	} else if err != nil {
		log.Print(err)
		status, content = 500, map[string]string{"detail": "see the log"}
	}
	response.Header().Set("Content-Type", "application/json")
	if status >= 400 {
		response.Header().Set("Content-Type", "application/problem+json")
	}
	if status == 429 || status == 503 {
		seconds := any(5)
		if problem, ok := content.(map[string]any); ok && problem["retryAfterSeconds"] != nil {
			seconds = problem["retryAfterSeconds"]
		}
		response.Header().Set("Retry-After", fmt.Sprint(seconds))
	}
	response.WriteHeader(status)
	json.NewEncoder(response).Encode(content)
}

func answer(request *http.Request, body []byte) (int, any, error) {
	path := request.URL.Path
	if path == "/.well-known/jwks.json" {
		return 200, map[string]any{"keys": []any{jwk()}}, nil
	}
	user := sessions[strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")]
	if user == "" {
		return 0, nil, refusal{401, "sign in"}
	}
	name := strings.TrimPrefix(path, "/doors/")
	found := registrationPath.FindStringSubmatch(path)
	switch {
	case request.Method == "GET" && path == "/doors":
		list, err := doors("ORDER BY id")
		return 200, list, err
	case request.Method == "GET" && name != path:
		list, err := doors("WHERE id = ?", name)
		if err == nil && len(list) == 0 {
			err = refusal{404, "there is no such door"}
		}
		if err != nil {
			return 0, nil, err
		}
		return 200, list[0], nil
	case request.Method == "PUT" && name != path:
		var wanted struct{ IsOpen *bool }
		if json.Unmarshal(body, &wanted) != nil || wanted.IsOpen == nil {
			return 0, nil, refusal{400, "isOpen is true or false"}
		}
		now, err := setDoor(name, *wanted.IsOpen)
		return 200, now, err
	case request.Method == "GET" && path == "/messages":
		list, err := messages(user)
		return 200, list, err
	case request.Method == "GET" && path == "/push-credential":
		credential, err := pushCredential(user, request.URL.Query().Get("installation"))
		return 200, credential, err
	case found != nil && (request.Method == "PUT" || request.Method == "DELETE"):
		item, err := registration(user, request.Method, found, body)
		if err != nil {
			return 0, nil, err
		}
		waits := waiting{item, make(chan result, 1)}
		forwarders[found[1]].waiting <- waits
		result := <-waits.answer
		if result.Status >= 400 {
			return result.Status, result.Problem, nil
		}
		return 200, result.Body, nil
	}
	return 0, nil, refusal{404, "the README lists the paths"}
}

func doors(clause string, values ...any) ([]door, error) {
	list := []door{}
	found, err := database.Query("SELECT id, name, isOpen FROM doors "+clause, values...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var next door
		if err := found.Scan(&next.ID, &next.Name, &next.IsOpen); err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, found.Err()
}

func messages(user string) ([]map[string]string, error) {
	list := []map[string]string{}
	found, err := database.Query("SELECT id, title FROM messages WHERE user = ? ORDER BY id DESC LIMIT 50", user)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var id, title string
		if err := found.Scan(&id, &title); err != nil {
			return nil, err
		}
		list = append(list, map[string]string{"id": id, "title": title})
	}
	return list, found.Err()
}

func setting(name, otherwise string) string {
	if text := os.Getenv(name); text != "" {
		return text
	}
	return otherwise
}

func prepare() (err error) {
	for _, pair := range strings.Split(os.Getenv("SESSIONS"), ",") {
		token, user, _ := strings.Cut(pair, "=")
		sessions[token] = user
	}
	text, err := os.ReadFile(os.Getenv("SIGNING_KEY_FILE"))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return errors.New("SIGNING_KEY_FILE is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	signingKey = key.(*ecdsa.PrivateKey)
	serviceKey, err := os.ReadFile(os.Getenv("SERVICE_KEY_FILE"))
	if err != nil {
		return err
	}
	for _, environment := range []string{"production", "development"} {
		f := &forwarder{
			url:     os.Getenv("REGISTRAR") + "/v1/apps/" + app + "/environments/" + environment + "/batch",
			key:     strings.TrimSpace(string(serviceKey)),
			waiting: make(chan waiting)}
		forwarders[environment] = f
		go f.run()
	}
	// FULL (2): a commit is on the disk, so that it survives a power failure too.
	database, err = sql.Open("sqlite3", "file:"+setting("DATABASE", "garage.db")+
		"?_txlock=immediate&_journal_mode=WAL&_synchronous=2&_busy_timeout=10000")
	if err == nil {
		_, err = database.Exec(schema)
	}
	return err
}

func main() {
	if err := prepare(); err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal("relay: ", relay()) }()
	listener, err := net.Listen("tcp", setting("LISTEN", "127.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(serve)))
}
