// net/http and pgx with prepared statements, as a good engineer writes a service without further requirements.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

type pet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

type newPet struct {
	Name       *string `json:"name"`
	CategoryID *int64  `json:"categoryId"`
	Status     *string `json:"status"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

const (
	columns   = "id, name, category_id, status"
	getPet    = "SELECT " + columns + " FROM pet WHERE id = $1"
	createPet = "INSERT INTO pet (name, category_id, status) VALUES ($1, $2, $3) RETURNING " + columns
	pets      = "http://localhost:3000/v1/pets"
	// Longer than the turns of all other servers, so that no turn starts with connecting.
	idleTimeout = 10 * time.Minute
)

var (
	pool          *pgxpool.Pool
	authorization = "Bearer " + os.Getenv("BOOTSTRAP_API_KEY")
)

func isStatus(text string) bool {
	return text == "available" || text == "pending" || text == "sold"
}

func send(response http.ResponseWriter, status int, body any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		log.Print(err)
	}
	header := response.Header()
	header.Set("Content-Type", "application/json")
	// Remove the line feed that the encoder adds.
	header.Set("Content-Length", strconv.Itoa(text.Len()-1))
	response.WriteHeader(status)
	response.Write(text.Bytes()[:text.Len()-1])
}

func fail(response http.ResponseWriter, status int, code, message string) {
	send(response, status, failure{code, message, status})
}

func failInside(response http.ResponseWriter, request *http.Request, err error) {
	// A client that has disconnected gets no response, and its statement is cancelled.
	if request.Context().Err() == nil {
		log.Print(err)
	}
	fail(response, 500, "internal_error", "failed")
}

// pgx prepares each text once per connection. One row more than the page shows whether there is a next page.
func listStatement(limit int, status, after string) (string, []any) {
	values := []any{limit + 1}
	var conditions []string
	if status != "" {
		values = append(values, status)
		conditions = append(conditions, fmt.Sprintf("status = $%d", len(values)))
	}
	if after != "" {
		id, _ := strconv.ParseInt(after, 10, 64)
		values = append(values, id)
		conditions = append(conditions, fmt.Sprintf("id > $%d", len(values)))
	}
	where := ""
	if len(conditions) > 0 {
		where = "WHERE " + strings.Join(conditions, " AND ")
	}
	return "SELECT " + columns + " FROM pet " + where + " ORDER BY id LIMIT $1", values
}

func list(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	limit, status, after := 20, query.Get("status"), query.Get("cursor")
	if text := query.Get("limit"); text != "" {
		limit, _ = strconv.Atoi(text)
	}
	if limit < 1 || limit > 100 {
		fail(response, 400, "invalid_parameter", "limit")
		return
	}
	if status != "" && !isStatus(status) {
		fail(response, 400, "invalid_parameter", "status")
		return
	}
	text, values := listStatement(limit, status, after)
	rows, err := pool.Query(request.Context(), text, values...)
	if err != nil {
		failInside(response, request, err)
		return
	}
	defer rows.Close()
	page := make([]pet, 0, limit+1)
	for rows.Next() {
		var each pet
		if err := rows.Scan(&each.ID, &each.Name, &each.CategoryID, &each.Status); err != nil {
			failInside(response, request, err)
			return
		}
		page = append(page, each)
	}
	if err := rows.Err(); err != nil {
		failInside(response, request, err)
		return
	}
	if len(page) > limit {
		page = page[:limit]
		filter := ""
		if status != "" {
			filter = "&status=" + status
		}
		link := fmt.Sprintf(`<%s?limit=%d%s&cursor=%d>; rel="next"`, pets, limit, filter, page[limit-1].ID)
		response.Header().Set("Link", link)
	}
	send(response, 200, page)
}

func get(response http.ResponseWriter, request *http.Request, text string) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		fail(response, 404, "pet_not_found", "not found")
		return
	}
	var found pet
	row := pool.QueryRow(request.Context(), getPet, id)
	err = row.Scan(&found.ID, &found.Name, &found.CategoryID, &found.Status)
	if errors.Is(err, pgx.ErrNoRows) {
		fail(response, 404, "pet_not_found", "not found")
	} else if err != nil {
		failInside(response, request, err)
	} else {
		send(response, 200, found)
	}
}

func create(response http.ResponseWriter, request *http.Request) {
	var body newPet
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil || body.Name == nil || body.CategoryID == nil {
		fail(response, 400, "validation_failed", "name and categoryId are required")
		return
	}
	if length := utf8.RuneCountInString(*body.Name); length < 1 || length > 255 {
		fail(response, 400, "validation_failed", "name")
		return
	}
	status := "available"
	if body.Status != nil {
		status = *body.Status
	}
	if !isStatus(status) {
		fail(response, 400, "validation_failed", "status")
		return
	}
	var made pet
	row := pool.QueryRow(request.Context(), createPet, *body.Name, *body.CategoryID, status)
	if err := row.Scan(&made.ID, &made.Name, &made.CategoryID, &made.Status); err != nil {
		failInside(response, request, err)
		return
	}
	response.Header().Set("Location", fmt.Sprintf("%s/%d", pets, made.ID))
	send(response, 201, made)
}

func route(response http.ResponseWriter, request *http.Request) {
	path, method := request.URL.Path, request.Method
	switch {
	case request.Header.Get("Authorization") != authorization:
		fail(response, 401, "invalid_api_key", "no key")
	case path == "/v1/pets" && method == "GET":
		list(response, request)
	case path == "/v1/pets" && method == "POST":
		create(response, request)
	case strings.HasPrefix(path, "/v1/pets/") && method == "GET":
		get(response, request, strings.TrimPrefix(path, "/v1/pets/"))
	default:
		fail(response, 404, "route_not_found", "not found")
	}
}

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	size, err := strconv.Atoi(os.Getenv("DATABASE_POOL_SIZE"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = int32(size)
	config.MaxConnIdleTime = idleTimeout
	if pool, err = pgxpool.ConnectConfig(context.Background(), config); err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(route)))
}
