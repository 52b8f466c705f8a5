/* cli/clock.c - a date as text, or the clock and time zone of this machine -> civil seconds. */
#include "clock.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_leap(int year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Seconds from 1970 to a date of the Gregorian calendar, year >= 1. */
static int64_t civil_seconds(int year, int month, int day, int64_t second_of_day) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t y = year - 1, days = y * 365 + y / 4 - y / 100 + y / 400 - 719162;
    days += before[month - 1] + (month > 2 && is_leap(year)) + day - 1;
    return days * 86400 + second_of_day;
}

nib_status nib_cli_clock(const char *date, int64_t *seconds, nib_error *err) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = -1;
    struct tm tm;
    if (!date) {
        time_t now = time(NULL);
        if (!localtime_r(&now, &tm)) return nib_fail(err, NIB_E_IO, "the clock of this machine cannot be read: give --date");
        *seconds = civil_seconds(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                                 tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec);
        return NIB_OK;
    }
    sscanf(date, "%4d-%2d-%2d%n", &year, &month, &day, &end);
    if (end > 0 && date[end]) {
        const char *time_of_day = date + end;
        end = -1;
        sscanf(time_of_day, "%*1[ T]%2d:%2d:%2d%n", &hour, &minute, &second, &end);
        if (end > 0 && time_of_day[end]) end = -1;
    }
    bool is_date = end > 0 && year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
                   day <= lengths[month - 1] + (month == 2 && is_leap(year));
    if (!is_date || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return nib_fail(err, NIB_E_ARG, "--date '%s': expected 2024-07-26 or \"2024-07-26 12:34:56\"", date);
    *seconds = civil_seconds(year, month, day, hour * 3600 + minute * 60 + second);
    return NIB_OK;
}
